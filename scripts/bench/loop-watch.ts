/**
 * Watches the event loop of the process that loads it (`bun --preload`), and says over IPC what it saw. Started alone, it
 * is the bare process beside it: what that sees is the machine's doing.
 */

const TICK_MS = 2;

/** The longest time between two ticks since the last reading, and the processor time of the whole process in it. */
export interface LoopGap {
  readonly gapMs: number;
  readonly processorMs: number;
  /** Gaps above 50 ms. */
  readonly over: number;
}

export const GAP_MS_MAX = 50;
const NONE: LoopGap = { gapMs: 0, processorMs: 0, over: 0 };

const processorMs = (): number => {
  const { user, system } = process.cpuUsage();
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
    const gapMs = nowMs - this.#lastMs;
    const over = this.#worst.over + (gapMs > GAP_MS_MAX ? 1 : 0);
    this.#worst =
      gapMs > this.#worst.gapMs
        ? { gapMs, processorMs: usedMs - this.#lastProcessorMs, over }
        : { ...this.#worst, over };
    [this.#lastMs, this.#lastProcessorMs] = [nowMs, usedMs];
  }
}

if (process.send !== undefined) {
  const watch = new LoopWatch();
  watch.start();
  process.on("message", () => process.send?.(watch.take()));
}
