import { expect, test } from "bun:test";
import { createLog, type LogLevel } from "../base/log.ts";
import { createTestClock } from "../../testing/clock.ts";
import { ClientAddresses } from "./client-addresses.ts";
import { createRequestLog } from "./request-log.ts";

const peerAt = (address: string | null) => ({
  requestIP: () => (address === null ? null : { address, port: 1, family: "IPv4" as const }),
});

const newLog = (level: LogLevel, peers: ReturnType<typeof peerAt> | null = peerAt("10.0.0.1")) => {
  const clock = createTestClock();
  const lines: Array<Record<string, unknown>> = [];
  const log = createLog(level, clock, (line) => lines.push(JSON.parse(line)));
  const clients = new ClientAddresses(["10.0.0.0/8"], log);
  if (peers !== null) clients.attach(peers);
  return { clock, lines, clients, requests: createRequestLog({ log, clock }, clients) };
};

const request = new Request("http://localhost/v1/account?x=1", { headers: { "x-forwarded-for": "203.0.114.9" } });

test("requests are not logged above the level debug", () => {
  expect(newLog("info").requests.begin(request)).toBeNull();
});

test("a line names the request, its client, the status and how long it took", async () => {
  const { clock, lines, requests } = newLog("debug");
  const end = requests.begin(request);
  await clock.advance(25);
  end?.(new Response(null, { status: 204, headers: { "x-request-id": "r-1" } }));
  const { at: _, ...line } = lines[0] ?? {};
  expect(line).toEqual({
    ...{ level: "debug", message: "request", method: "GET", path: "/v1/account", status: 204, ms: 25 },
    ...{ client: "203.0.114.9", request_id: "r-1" },
  });
});

test.each([
  ["/setup/secret", "/setup/…"],
  ["/setup/secret/more", "/setup/…"],
  ["/test/setup/secret?x=y", "/test/setup/…"],
  ["/v1/setup/other", "/v1/setup/other"],
])("the path %s is logged as %s", (path, logged) => {
  const { lines, requests } = newLog("debug");
  requests.begin(new Request(`http://localhost${path}`))?.(new Response());
  expect(lines).toMatchObject([{ path: logged }]);
});

test.each([
  ["there is no server", null],
  ["the connection has closed", peerAt(null)],
])("the client is unknown, whatever it forwards, when %s", (_, server) => {
  const { lines, requests } = newLog("debug", server);
  requests.begin(request)?.(new Response());
  expect(lines).toMatchObject([{ message: "request", client: null }]);
});

test("proxies that are trusted later count from then on", () => {
  const { lines, requests, clients } = newLog("debug");
  for (const networks of [["192.0.2.0/24"], ["10.0.0.0/8"]]) {
    clients.trust(networks);
    requests.begin(request)?.(new Response());
  }
  const requested = lines.filter(({ message }) => message === "request");
  expect(requested.map(({ client }) => client)).toEqual(["10.0.0.1", "203.0.114.9"]);
});
