// Loaded before a server that comes as it is: has it listen at any free port of this machine alone, and say where.

import { Server } from 'node:net';

const listen = Server.prototype.listen;

Server.prototype.listen = function (_, ...rest) {
    const path = process.argv.at(-1) === 'sse' ? 'sse' : 'mcp';
    this.once('listening', () => console.error(`http://127.0.0.1:${this.address().port}/${path}`));
    return listen.call(this, 0, '127.0.0.1', ...rest.filter(each => typeof each === 'function'));
};
