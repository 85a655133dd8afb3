// Have the suite's servers keep idle connections.
//
// All servers of a run are in one process. On a machine that is busy, it does not read for more than the five seconds
// after which Node.js closes an idle connection, and then resets one on which a request has arrived.
import { Server } from "node:http";

const TEN_MINUTES = 600_000;
const { listen } = Server.prototype;

Server.prototype.listen = function (...args) {
  this.keepAliveTimeout = TEN_MINUTES;
  return listen.apply(this, args);
};
