/**
 * 10,000 idle connections to the API, then as many to the report receiver. Memory must stay bounded, other clients must be served
 * meanwhile, and afterwards everything must be released.
 */
import { connect, type Socket } from "node:net";
import type { Claim, Findings } from "./claims.ts";
import { eventually, descriptorsOf, residentMbOf } from "../harness/binary.ts";
import { type ChaosRun, withChaosRun } from "./run.ts";

const CONNECTIONS = 10_000;
const OPENED_AT_ONCE = 200;
const HELD_ROUNDS = 5;
const RELEASED_MS_MAX = 30_000;
const MAILS = 80;
const GROWTH_MB_MAX = 200;
const HEALTHZ_MS_MAX = 1_000;
/** Descriptors that a service in use has beside those connections. */
const OWN_DESCRIPTORS_MAX = 400;

/** Connections that send nothing, from 640 addresses of 127.30.0.0/16. */
class IdleConnections {
  readonly #sockets = new Set<Socket>();

  async open(host: string, port: number): Promise<void> {
    for (let opened = 0; opened < CONNECTIONS; opened += OPENED_AT_ONCE)
      await Promise.all(Array.from({ length: OPENED_AT_ONCE }, (_, n) => this.#openOne(host, port, opened + n)));
  }

  /** How many are open now: the service may refuse or close some. */
  count(): number {
    return this.#sockets.size;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  #openOne(host: string, port: number, n: number): Promise<void> {
    const socket = connect({ host, port, localAddress: `127.30.${n & 63}.${1 + ((n >> 6) % 10)}` });
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.on("connect", () => {
      this.#sockets.add(socket);
      resolve();
    });
    socket.on("error", () => resolve());
    socket.on("close", () => {
      this.#sockets.delete(socket);
      resolve();
    });
    socket.resume();
    return promise;
  }
}

/** Holds connections while clients work, and returns what became of both. */
const hold = async (
  run: ChaosRun,
  { pid, url }: { readonly pid: number; readonly url: string },
  place: { readonly name: string; readonly host: string; readonly port: number },
): Promise<readonly Claim[]> => {
  const idle = new IdleConnections();
  const beforeMb = residentMbOf(pid);
  const checksBefore = run.load.checks.length;
  const mailsBefore = run.stream.acknowledged.size;
  await idle.open(place.host, place.port);
  const [open, held] = [idle.count(), descriptorsOf(pid)];
  let slowestMs = 0;
  for (let round = 0; round < HELD_ROUNDS; round++) {
    const sending = run.stream.send(MAILS / HELD_ROUNDS / 2);
    await run.load.round(url);
    sending.stop();
    await sending.done;
    const startedMs = performance.now();
    await (await fetch(`${url}/healthz`)).text();
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
  }
  const heldMb = residentMbOf(pid);
  idle.close();
  const isReleased = await eventually(() => descriptorsOf(pid) < OWN_DESCRIPTORS_MAX, RELEASED_MS_MAX);
  const checks = run.load.checks.length - checksBefore;
  const mails = run.stream.acknowledged.size - mailsBefore;
  console.error(
    `${place.name}: ${open} of ${CONNECTIONS} open, ${held} descriptors, ${Math.round(beforeMb)} → ${Math.round(heldMb)} MB, /healthz at most ${Math.round(slowestMs)} ms, meanwhile ${checks} checks and ${mails} report mails`,
  );
  return [
    [`${place.name}: MB of growth beyond ${GROWTH_MB_MAX}`, Math.max(0, Math.round(heldMb - beforeMb - GROWTH_MB_MAX))],
    [`${place.name}: /healthz slower than ${HEALTHZ_MS_MAX} ms`, slowestMs > HEALTHZ_MS_MAX ? 1 : 0],
    [`${place.name}: no check was accepted meanwhile`, checks > 0 ? 0 : 1],
    [`${place.name}: no report mail was accepted meanwhile`, mails > 0 ? 0 : 1],
    [`${place.name}: descriptors are not released`, isReleased ? 0 : 1],
  ];
};

/** Idle connections to everything that listens. */
export const runConnections = (): Promise<Findings> =>
  withChaosRun({ mails: MAILS }, async (run) => {
    const server = await run.start();
    const target = { pid: server.process.pid, url: server.url };
    const api = { name: "API", host: "127.0.0.1", port: Number(new URL(server.url).port) };
    const claims = [
      ...(await hold(run, target, api)),
      ...(await hold(run, target, { name: "report receiver", host: run.reports.ip, port: run.reports.port })),
    ];
    return run.findings(`${CONNECTIONS} idle connections each`, [...claims, ...(await run.finish(server))]);
  });
