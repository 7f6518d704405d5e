import { readdirSync, readFileSync } from "node:fs";
import type { Clock } from "../../foundation/base/clock.ts";
import { Counter, Gauge, Histogram, type Registry } from "./prometheus.ts";

/** Interval of the ticks by which the event loop is measured. */
export const TICK_MS = 100;
const LAG_BUCKETS_S = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const MICROSECONDS_PER_SECOND = 1e6;

/** Limits and descriptors exist on Linux only; undefined elsewhere. */
const onLinux = <T>(read: () => T): T | undefined => (process.platform === "linux" ? read() : undefined);
const openFiles = (): number | undefined => onLinux(() => readdirSync("/proc/self/fd").length - 1);
const openFilesMax = (): number | undefined =>
  onLinux(() => {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  });

const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / MICROSECONDS_PER_SECOND;
};

const createProcessGauges = (registry: Registry) => {
  const registers = [registry];
  const gauge = (name: string, help: string) => new Gauge({ registers, name, help });
  return {
    cpu: new Counter({
      ...{ registers, name: "process_cpu_seconds_total" },
      help: "User and system CPU time of the process in seconds.",
    }),
    resident: gauge("process_resident_memory_bytes", "Resident memory in bytes."),
    openFiles: gauge("process_open_fds", "Open file descriptors."),
    openFilesMax: gauge("process_max_fds", "Limit of open file descriptors."),
    started: gauge("process_start_time_seconds", "Start of the process, in seconds since 1970."),
    lag: new Histogram({
      ...{ registers, name: "postwarden_event_loop_lag_seconds", buckets: LAG_BUCKETS_S },
      help: `How late a timer that fires every ${TICK_MS} ms was.`,
    }),
  };
};

/** The process itself: CPU, memory, file descriptors, and how long the event loop is held. */
export class ProcessMetrics {
  readonly #clock: Clock;
  readonly #gauges: ReturnType<typeof createProcessGauges>;
  #cancelTick: (() => void) | null = null;

  constructor(registry: Registry, clock: Clock) {
    this.#clock = clock;
    this.#gauges = createProcessGauges(registry);
    this.#gauges.started.set(clock.nowMs() / 1_000);
  }

  /** Measures the event loop until `stop`. */
  start(): void {
    const dueMs = this.#clock.monotonicMs() + TICK_MS;
    this.#cancelTick = this.#clock.after(TICK_MS, () => {
      this.#gauges.lag.observe(Math.max(0, this.#clock.monotonicMs() - dueMs) / 1_000);
      this.start();
    });
  }

  stop(): void {
    this.#cancelTick?.();
    this.#cancelTick = null;
  }

  /** Reads what is only known at a scrape. */
  update(): void {
    const gauges = this.#gauges;
    gauges.cpu.reset();
    gauges.cpu.inc(cpuSeconds());
    gauges.resident.set(process.memoryUsage.rss());
    const [open, max] = [openFiles(), openFilesMax()];
    if (open !== undefined) gauges.openFiles.set(open);
    if (max !== undefined) gauges.openFilesMax.set(max);
  }
}
