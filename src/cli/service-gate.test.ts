import { expect, test } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import { createApplication } from "../service/http-application.ts";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createServer } from "../service/server.ts";
import { createTestClock } from "../testing/clock.ts";
import { ServiceGate } from "./service-gate.ts";

const setUp = () => {
  const clock = createTestClock();
  const log = createLog("error", clock, () => undefined);
  const gate = new ServiceGate();
  const server = createServer({ ...gate.handlers, log, clock, clients: new ClientAddresses([]) });
  const counted: string[] = [];
  return {
    counted,
    get: (path: string) => server.handle(new Request(`http://localhost${path}`)),
    open: () =>
      gate.open({
        applicationOf: () => createApplication({ log, clock, routes: [] }),
        metrics: { countRequest: (method, status) => counted.push(`${method} ${status}`) },
      }),
  };
};

test("before the service is composed, only the liveness is answered; other requests wait for it", async () => {
  const { get, open, counted } = setUp();
  const waiting = get("/nowhere");
  expect((await get("/healthz")).status).toBe(200);
  expect(Bun.peek.status(waiting)).toBe("pending");
  open();
  expect((await waiting).status).toBe(404);
  expect((await get("/elsewhere")).status).toBe(404);
  expect(counted).toEqual(["GET 200", "GET 404", "GET 404"]);
});
