import { cpuSecondsOf, threadTimesOf } from "../harness/binary.ts";
import { type Mark, median } from "./marks.ts";

/** Processor time for each piece of work, in microseconds: what busy neighbours change least. */
export interface CpuTimes {
  /** Of all threads. */
  readonly total: number;
  readonly eventLoop: number;
  readonly compiler: number;
}

const totalOf = (pid: number): number => {
  if (pid !== process.pid) return cpuSecondsOf(pid) * 1e6;
  const { user, system } = process.cpuUsage();
  return user + system;
};

/** Measures a process from now on. The result says what it used since then for each of `count` pieces. */
export const startCpuMeter = (pid: number): ((count: number) => CpuTimes) => {
  const read = () => ({ total: totalOf(pid), ...threadTimesOf(pid) });
  const before = read();
  return (count) => {
    const now = read();
    const compiler = [...now.compilers].reduce(
      (sum, [thread, time]) => sum + time - (before.compilers.get(thread) ?? 0),
      0,
    );
    return {
      total: (now.total - before.total) / count,
      eventLoop: (now.eventLoop - before.eventLoop) / count,
      compiler: compiler / count,
    };
  };
};

interface CpuLimits {
  /** In microseconds. */
  readonly total?: number;
  readonly eventLoop?: number;
}

/** The medians of all rounds, for all threads, the event loop's and the compiler's. */
export const cpuMarks = (
  { group, what }: Pick<Mark, "group" | "what">,
  rounds: readonly CpuTimes[],
  limits: CpuLimits = {},
): Mark[] => {
  const mark = (name: keyof CpuTimes, of: string, most?: number): Mark => {
    const values = rounds.map((round) => round[name]);
    const note =
      rounds.length > 1 ? { note: `least of ${rounds.length} rounds: ${Math.min(...values).toFixed(0)} µs` } : {};
    const limit = most === undefined ? {} : { limit: { most } };
    return { group, what: `${what}: ${of}`, value: Math.round(median(values)), unit: "µs", ...limit, ...note };
  };
  return [
    mark("total", "processor time of each", limits.total),
    mark("eventLoop", "of it on the event loop", limits.eventLoop),
    mark("compiler", "of it by the compiler's threads"),
  ];
};
