import { expect, test } from "bun:test";
import { Elysia } from "elysia";
import { createLog } from "../base/log.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createBoundary } from "./boundary.ts";

const respond = async (code: string) => {
  const [clock, logged] = [createTestClock(), [] as string[]];
  const log = createLog("error", clock, (line) => logged.push(line));
  const app = new Elysia().use(createBoundary({ log, clock, methodsOf: () => ["GET"] })).get("/", () => {
    throw Object.assign(new Error("write failed"), { code });
  });
  const response = await app.handle(new Request("http://localhost/", { headers: { host: "localhost" } }));
  return { status: response.status, line: logged[0] ?? "" };
};

test.each(["ENOSPC", "EDQUOT", "EROFS", "EIO", "SQLITE_FULL", "SQLITE_IOERR_WRITE"])(
  "%s is a state of the disk: 503, not a bug",
  async (code) => {
    const { status, line } = await respond(code);
    expect(status).toBe(503);
    expect(line).toContain("not writable");
  },
);

test.each(["ENOENT", "EIOX", "SQLITE_CONSTRAINT"])("%s is a bug: 500", async (code) => {
  const { status, line } = await respond(code);
  expect(status).toBe(500);
  expect(line).toContain("request failed");
});
