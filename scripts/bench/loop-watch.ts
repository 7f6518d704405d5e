/**
 * Watches the event loop of the process that loads it (`--preload`), and says over IPC what it saw. Started alone, it
 * is the bare process beside it: what that sees is the machine's doing.
 */

const TICK_MS = 2;

/** What was seen since the last reading. */
export interface LoopGap {
  /** The longest time between two ticks. */
  readonly gapMs: number;
  /** The most processor time of its thread between two ticks: what is left of a gap was waiting, for a processor or the disk. */
  readonly heldMs: number;
  /** When that ended, since the start of the process. */
  readonly atMs: number;
  /** How often it was above the limit. */
  readonly over: number;
}

export const GAP_MS_MAX = 50;
const NONE: LoopGap = { gapMs: 0, heldMs: 0, atMs: 0, over: 0 };

const processorMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** Ticks as often as timers can, from the start on. */
class LoopWatch {
  #worst: LoopGap = NONE;
  #lastMs = performance.now();
  #lastProcessorMs = processorMs();

  start(): void {
    setInterval(() => this.#tick(), TICK_MS);
  }

  /** What was seen since the last reading. */
  take(): LoopGap {
    this.#tick();
    const worst = this.#worst;
    this.#worst = NONE;
    return worst;
  }

  #tick(): void {
    const [nowMs, usedMs] = [performance.now(), processorMs()];
    const before = this.#worst;
    const gapMs = nowMs - this.#lastMs;
    const heldMs = usedMs - this.#lastProcessorMs;
    this.#worst = {
      gapMs: Math.max(before.gapMs, gapMs),
      heldMs: Math.max(before.heldMs, heldMs),
      atMs: heldMs > before.heldMs ? nowMs : before.atMs,
      over: before.over + (heldMs > GAP_MS_MAX ? 1 : 0),
    };
    [this.#lastMs, this.#lastProcessorMs] = [nowMs, usedMs];
  }
}

if (process.send !== undefined) {
  const watch = new LoopWatch();
  watch.start();
  process.on("message", () => process.send?.(watch.take()));
}
