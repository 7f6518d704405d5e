import { expect, test } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import { createApplication } from "../service/http-application.ts";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createServer } from "../service/server.ts";
import { createTestClock } from "../testing/clock.ts";
import { ServiceGate } from "./service-gate.ts";

const setUp = () => {
  const clock = createTestClock();
  const lines: string[] = [];
  const log = createLog("error", clock, (line) => void lines.push(line));
  const gate = new ServiceGate(clock);
  const server = createServer({ ...gate.handlers, log, clock, clients: new ClientAddresses([]) });
  const counted: string[] = [];
  const application = createApplication({ log, clock, routes: [] });
  return {
    ...{ clock, counted, lines },
    get: (path: string) => server.handle(new Request(`http://localhost${path}`)),
    callerOf: gate.handlers.callerOf,
    open: () =>
      gate.open({
        applicationOf: () => application,
        callerOf: ({ url }) => url,
        metrics: { countRequest: (method, status) => counted.push(`${method} ${status}`) },
      }),
  };
};

test("before the service is composed, only the liveness is answered; other requests wait for it", async () => {
  const { get, open, counted, clock } = setUp();
  const waiting = get("/nowhere");
  expect((await get("/healthz")).status).toBe(200);
  expect(Bun.peek.status(waiting)).toBe("pending");
  open();
  expect((await waiting).status).toBe(404);
  expect((await get("/elsewhere")).status).toBe(404);
  expect(counted).toEqual(["GET 200", "GET 404", "GET 404"]);
  expect(clock.pending()).toBe(0);
});

const LOADING = {
  error: "unavailable",
  message: "The service is loading. Try again after the time in Retry-After.",
};

test("meanwhile the readiness is 503 at once, and afterwards that of the service; neither is an error in the log", async () => {
  const { get, open, lines } = setUp();
  const response = await get("/readyz");
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(response.headers.get("x-request-id")).not.toBeNull();
  expect(await response.json()).toEqual(LOADING);
  open();
  expect((await get("/readyz")).status).toBe(404);
  expect(lines).toEqual([]);
});

test("a request that waited for 30 s gets 503; the next waits again", async () => {
  const { get, open, clock } = setUp();
  const first = get("/nowhere");
  await clock.advance(29_999);
  expect(Bun.peek.status(first)).toBe("pending");
  await clock.advance(1);
  expect([(await first).status, await (await first).json()]).toEqual([503, LOADING]);
  const second = get("/nowhere");
  open();
  expect((await second).status).toBe(404);
});

test("1,000 requests may wait; more get 503 at once, until a place is free", async () => {
  const { get, open, clock } = setUp();
  const waiting = Array.from({ length: 1_000 }, () => get("/nowhere"));
  await clock.advance(0);
  expect((await get("/nowhere")).status).toBe(503);
  expect((await get("/healthz")).status).toBe(200);
  open();
  expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([404]));
});

test("a thousand requests that gave up leave their places to others", async () => {
  const { get, open, clock } = setUp();
  const waiting = Array.from({ length: 1_000 }, () => get("/nowhere"));
  await clock.advance(30_000);
  expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([503]));
  const next = get("/nowhere");
  await clock.advance(0);
  open();
  expect((await next).status).toBe(404);
});

test("callers are unknown until the service is composed", () => {
  const { callerOf, open } = setUp();
  const request = new Request("http://localhost/");
  expect(callerOf(request)).toBeNull();
  open();
  expect(callerOf(request)).toBe(request.url);
});
