/**
 * A server that writes a page to disk for each request, as the service does, and has nothing else to do: what it takes
 * shows how busy the machine and its disk are with other things. The argument is a directory for its file. Sends
 * `{ controlUrl }` to its parent and ends with it.
 */
import { fsyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";

const PAGE = Buffer.alloc(4096);
const file = openSync(join(process.argv[2] ?? ".", "control"), "w");

process.on("disconnect", () => process.exit());
// Ctrl-C in a terminal reaches the whole process group; the parent decides when this one ends.
process.on("SIGINT", () => undefined);
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => {
    writeSync(file, PAGE, 0, PAGE.length, 0);
    fsyncSync(file);
    return new Response("ok");
  },
});
process.send?.({ controlUrl: `http://127.0.0.1:${server.port}` });
