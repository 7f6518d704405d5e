/** What the kernel says of a process (Linux). */
import { readdirSync, readFileSync } from "node:fs";

const CLOCK_TICKS_PER_S = 100;

/** Resident memory in megabytes (10^6 bytes). */
export const residentMbOf = (pid: number): number => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6;
};

/** Open descriptors. */
export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** Processor time so far, in seconds. */
export const cpuSecondsOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_S;
};
