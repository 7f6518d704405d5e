import { existsSync } from "node:fs";
import { dlopen, FFIType, ptr } from "bun:ffi";
import { isoDay } from "../foundation/base/days.ts";
import type { Clock } from "../foundation/base/clock.ts";
import { type DnsResolver, isDefinite } from "../foundation/net/dns.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";

const clockCheck = doctorFindings("clock", "Clock");

/** Whether something keeps the kernel's clock right; null when the kernel does not say. */
export type ClockSync = "synchronized" | "unsynchronized" | null;

/** `struct timex` of adjtimex(2) is 208 bytes on 64-bit Linux; a `modes` of 0 only reads. */
const TIMEX_BYTES = 256;
const TIMEX_STATUS_OFFSET = 40;
const STA_UNSYNC = 0x40;
const LIBC_NAMES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
/** systemd-timesyncd touches it at each synchronization (systemd-timesyncd.service(8)). */
const TIMESYNC_FILE = "/run/systemd/timesync/synchronized";

/** What the kernel says about its clock (adjtimex(2)); without a privilege, and without asking anybody else. */
export const readClockSync = (): ClockSync => {
  for (const name of LIBC_NAMES) {
    const status = readTimexStatus(name);
    if (status !== null) return (status & STA_UNSYNC) === 0 ? "synchronized" : "unsynchronized";
  }
  return existsSync(TIMESYNC_FILE) ? "synchronized" : null;
};

const readTimexStatus = (library: string): number | null => {
  const timex = new Uint8Array(TIMEX_BYTES);
  try {
    const libc = dlopen(library, { adjtimex: { args: [FFIType.ptr], returns: FFIType.i32 } });
    const returned = libc.symbols.adjtimex(ptr(timex));
    libc.close();
    return returned < 0 ? null : new DataView(timex.buffer).getInt32(TIMEX_STATUS_OFFSET, true);
  } catch {
    // Not this libc, or a sandbox that forbids the call: the state is not known.
    return null;
  }
};

const DAY_MS = 86_400_000;
/** The root zone is published at least once a day; caches keep its SOA record for up to another. */
const BEHIND_DAYS_MAX = 1;
const AHEAD_DAYS_MAX = 4;
const SERIAL = /^(?<year>20\d\d)(?<month>\d\d)(?<day>\d\d)\d\d$/;

/** The day in the serial number of the root zone's SOA record, in days since 1970; null when it holds none. */
export const rootZoneDay = (serial: number): number | null => {
  const parts = SERIAL.exec(String(serial))?.groups;
  if (parts === undefined) return null;
  const ms = Date.parse(`${parts.year}-${parts.month}-${parts.day}T00:00:00Z`);
  return Number.isNaN(ms) ? null : ms / DAY_MS;
};

export interface ClockCheckOptions {
  readonly clock: Clock;
  readonly resolver: DnsResolver;
  readonly sync: ClockSync;
}

const HARM = "Webhook signatures, certificates and the times of results depend on it.";
const ADVICE =
  "Install and start a time service: apt install systemd-timesyncd (or chrony), then timedatectl set-ntp true.";

/**
 * Whether the clock is right to a day, by the serial number of the root zone (its date by convention), and whether
 * something keeps it right to the second, by the kernel. No time server is queried.
 */
export const checkClock = async ({ clock, resolver, sync }: ClockCheckOptions): Promise<DoctorCheck> => {
  const root = await resolver.resolve(".", "SOA");
  const day = rootZoneDay(root.records[0]?.serial ?? 0);
  const today = Math.floor(clock.nowMs() / DAY_MS);
  const nowDay = isoDay(today);
  if (isDefinite(root.outcome) && day !== null) {
    const ahead = today - day;
    const isWrong = ahead < -BEHIND_DAYS_MAX || ahead > AHEAD_DAYS_MAX;
    if (isWrong)
      return clockCheck.fail(
        `The clock says ${nowDay}, but the DNS root zone is of ${isoDay(day)}: the clock is wrong by about ${Math.abs(ahead)} days. ${HARM} ${ADVICE}`,
      );
  }
  if (sync === "synchronized") return clockCheck.ok(`The clock says ${nowDay}; the kernel reports it as synchronized.`);
  return clockCheck.warn(
    sync === null
      ? `It is not known whether the clock is synchronized. ${HARM} Compare it with: timedatectl.`
      : `The kernel reports that nothing synchronizes the clock. ${HARM} ${ADVICE}`,
  );
};
