/**
 * Asks the service for `/healthz` every 50 ms and for a live check of a healthy domain every 100 ms, whether or not the
 * earlier requests were answered. A process of its own, so that the attacker's work does not count as the service's time.
 */
import type { Sample, Seen, WatcherOrder } from "./samples.ts";

const HEALTHZ_EVERY_MS = 50;
const CHECK_EVERY_MS = 100;
const TICK_MS = 5;
/** A request without a response by then counts with the time that it has waited. */
const WAIT_MS_MAX = 10_000;
const DRAIN_MS_MAX = 3_000;

interface Lag {
  readonly fromMs: number;
  readonly untilMs: number;
}

let lags: Lag[] = [];
let tickedAtMs = performance.now();
setInterval(() => {
  const nowMs = performance.now();
  if (nowMs - tickedAtMs > 2 * TICK_MS) lags.push({ fromMs: tickedAtMs, untilMs: nowMs });
  tickedAtMs = nowMs;
}, TICK_MS);

const lagOf = ({ fromMs, untilMs }: Lag): number => untilMs - fromMs - TICK_MS;

/** The longest time within this span in which the watcher did not run. */
const lagWithin = (fromMs: number, untilMs: number): number =>
  Math.max(0, ...lags.filter((lag) => lag.untilMs > fromMs && lag.fromMs < untilMs).map(lagOf));

/** One phase: `samples` grows as answers arrive. */
class Phase {
  readonly healthz: Sample[] = [];
  readonly checks: Sample[] = [];
  readonly control: Sample[] = [];
  private readonly open = new Set<Promise<void>>();
  private readonly ended = new AbortController();

  /** Times a request; `problem` tells what is wrong with its answer. */
  time(samples: Sample[], request: (signal: AbortSignal) => Promise<string | null>): void {
    const fromMs = performance.now();
    const signal = AbortSignal.any([this.ended.signal, AbortSignal.timeout(WAIT_MS_MAX)]);
    const note = async (problem: string | null): Promise<void> => {
      const untilMs = performance.now();
      // The lag that delayed this answer is known at the next tick.
      await Bun.sleep(2 * TICK_MS);
      samples.push({ ms: Math.max(0, untilMs - fromMs - lagWithin(fromMs, untilMs)), problem });
    };
    const done = request(signal).then(note, (error: Error) => note(signal.aborted ? "no answer in time" : error.name));
    this.open.add(done);
    void done.finally(() => this.open.delete(done));
  }

  async end(): Promise<Seen> {
    await Promise.race([Promise.all(this.open), Bun.sleep(DRAIN_MS_MAX)]);
    this.ended.abort();
    await Promise.all(this.open);
    return { healthz: this.healthz, checks: this.checks, control: this.control };
  }
}

let serial = 0;

const askHealth = async (url: string, signal: AbortSignal): Promise<string | null> => {
  const response = await fetch(`${url}/healthz`, { signal });
  await response.text();
  return response.status === 200 ? null : `status ${response.status}`;
};

/** A domain of its own for each check, so that nothing about it is known yet. */
const check = async (url: string, key: string, signal: AbortSignal): Promise<string | null> => {
  const n = serial++;
  const response = await fetch(`${url}/v1/email-verifications?timeout=30`, {
    ...{ method: "POST", signal },
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ email: `ada@healthy${n}.test` }),
  });
  const text = await response.text();
  if (response.status !== 200) return `status ${response.status}`;
  return text.includes('"verdict":"deliverable"') ? null : (/"sub_status":"\w+"/.exec(text)?.[0] ?? "no verdict");
};

let timers: Timer[] = [];
let phase: Phase | null = null;

const begin = ({ url, controlUrl, keys }: WatcherOrder & { kind: "begin" }): void => {
  const current = new Phase();
  phase = current;
  lags = [];
  timers = [
    setInterval(() => current.time(current.healthz, (signal) => askHealth(url, signal)), HEALTHZ_EVERY_MS),
    setInterval(() => current.time(current.control, (signal) => askHealth(controlUrl, signal)), HEALTHZ_EVERY_MS),
    setInterval(
      () => current.time(current.checks, (signal) => check(url, keys[serial % keys.length] ?? "", signal)),
      CHECK_EVERY_MS,
    ),
  ];
};

const end = async (): Promise<void> => {
  for (const timer of timers.splice(0)) clearInterval(timer);
  process.send?.(await phase?.end());
};

process.on("message", (order: WatcherOrder) => {
  if (order.kind === "begin") begin(order);
  else void end();
});
process.on("disconnect", () => process.exit());
// Ctrl-C in a terminal reaches the whole process group; the parent decides when this one ends.
process.on("SIGINT", () => undefined);
process.send?.("ready");
