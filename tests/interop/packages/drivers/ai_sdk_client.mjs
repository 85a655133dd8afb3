// List the tools of a server and call one with the AI SDK; the arguments are the server's command.

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';

const [command, ...args] = process.argv.slice(2);
const client = await createMCPClient({ transport: new StdioTransport({ command, args }) });
const tools = await client.tools();
const result = await tools.add.execute({ a: 2, b: 3 }, { toolCallId: 'one', messages: [] });
await client.close();
console.log(JSON.stringify({ tools: Object.keys(tools), result: JSON.stringify(result) }));
