// List the tools of a server and call one with Mastra; the arguments are the server's command.

import { MCPClient } from '@mastra/mcp';

const [command, ...args] = process.argv.slice(2);
const client = new MCPClient({ servers: { ours: { command, args } } });
const tools = await client.listTools();
const result = await tools.ours_add.execute({ a: 2, b: 3 }, {});
await client.disconnect();
const names = Object.keys(tools).map((each) => each.replace(/^ours_/, ''));
console.log(JSON.stringify({ tools: names, result: JSON.stringify(result) }));
