import { isoTime } from "../../foundation/base/clock.ts";
import { DAY_MS, isTimeZone } from "../../foundation/base/days.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { newId, type Owner } from "../../foundation/base/secrets.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import { type WindowRow, WindowStore } from "./window-store.ts";
import { clockTime, minuteOfDay, QUIET_MS_MAX, type Weekday, WEEKDAYS, weeklyEndMs } from "./window-times.ts";

/** A window to set: from now until a time, or every week. */
export interface NewWindow {
  readonly until?: string | undefined;
  readonly weekly?: WeeklyWindow | undefined;
}

interface WeeklyWindow {
  readonly days: readonly Weekday[];
  /** `22:00`. */
  readonly from: string;
  readonly to: string;
  readonly time_zone: string;
}

/** Windows of one owner. */
export const WINDOWS_MAX = 20;

/** When a window ends that is on at a time; null when it is not on. */
const endOf = (row: WindowRow, nowMs: number): number | null => {
  const { untilMs, fromMinute, toMinute, timeZone } = row;
  if (untilMs !== null) return untilMs > nowMs ? untilMs : null;
  if (fromMinute === null || toMinute === null || timeZone === null) return null;
  return weeklyEndMs({ days: daysOf(row), fromMinute, toMinute, timeZone }, nowMs);
};

const daysOf = ({ days }: WindowRow): Weekday[] => {
  const named = new Set(days?.split(","));
  return WEEKDAYS.filter((day) => named.has(day));
};

const refuse = (path: string, message: string) => new AppError("Invalid request body", { issues: [{ path, message }] });

/** Times in which no mail and no messages are sent. Events of that time are sent after it. Webhooks are not delayed. */
export class MaintenanceWindows {
  readonly #store: WindowStore;

  constructor(private readonly runtime: DbClock) {
    this.#store = new WindowStore(runtime.db);
  }

  /** Until when nothing is sent for an owner, as far as its windows say today; null when no window is on. */
  quietUntilMs({ accountId, mode }: Owner): number | null {
    const nowMs = this.runtime.clock.nowMs();
    const ends = this.#store.inForce({ accountId, mode }).map((row) => endOf(row, nowMs) ?? 0);
    return ends.some((end) => end > nowMs) ? Math.max(...ends) : null;
  }

  /** Whether something that happened at a time has to wait. */
  mustWait(owner: Owner, sinceMs: number): boolean {
    return this.runtime.clock.nowMs() - sinceMs < QUIET_MS_MAX && this.quietUntilMs(owner) !== null;
  }

  /** When something could be sent that happened at a time: later where it had to wait for a window. */
  waitedUntilMs({ accountId, mode }: Owner, sinceMs: number): number {
    const nowMs = this.runtime.clock.nowMs();
    // A weekly window is shorter than a day.
    const ends = this.#store.inForce({ accountId, mode }).map(({ untilMs }) => untilMs ?? sinceMs + DAY_MS);
    return Math.min(nowMs, Math.max(sinceMs, ...ends));
  }

  /** The windows of an owner and those of the operator, as the API shows them. */
  view({ accountId, mode }: Owner) {
    const quietMs = this.quietUntilMs({ accountId, mode });
    return {
      quiet_until: quietMs === null ? null : isoTime(quietMs),
      windows: this.#store.inForce({ accountId, mode }).flatMap((row) => this.#viewOf(row)),
    };
  }

  /** The windows that the operator set for all accounts. */
  viewOfOperator() {
    return this.#store.of(null).flatMap((row) => this.#viewOf(row));
  }

  #viewOf(row: WindowRow) {
    const { id, accountId, untilMs, fromMinute, toMinute, timeZone, createdAtMs } = row;
    const endMs = endOf(row, this.runtime.clock.nowMs());
    if (untilMs !== null && endMs === null) return [];
    const weekly =
      fromMinute === null || toMinute === null || timeZone === null
        ? null
        : { days: daysOf(row), from: clockTime(fromMinute), to: clockTime(toMinute), time_zone: timeZone };
    return [
      {
        id,
        set_by: accountId === null ? ("operator" as const) : ("account" as const),
        until: untilMs === null ? null : isoTime(untilMs),
        weekly,
        on_until: endMs === null ? null : isoTime(endMs),
        created_at: isoTime(createdAtMs),
      },
    ];
  }

  /** Sets a window and returns its id. Throws `Invalid request body`, and `conflict` for one too many. */
  async add(owner: Owner | null, window: NewWindow): Promise<string> {
    const { db, clock } = this.runtime;
    const nowMs = clock.nowMs();
    const times = this.#timesOf(window, nowMs);
    const id = newId();
    await db.commit((tx) => {
      const rows = this.#store.of(owner);
      const ended = rows.filter(({ untilMs }) => untilMs !== null && untilMs <= nowMs);
      // The last that ended says how long mail had to wait.
      const old = ended.toSorted((a, b) => (b.untilMs ?? 0) - (a.untilMs ?? 0)).slice(1);
      for (const row of old) this.#store.remove(tx, row.id);
      if (rows.length - ended.length >= WINDOWS_MAX)
        throw new AppError("conflict", {
          message: `There are ${WINDOWS_MAX} maintenance windows already. Remove one.`,
        });
      const whose = { accountId: owner?.accountId ?? null, mode: owner?.mode ?? ("live" as const) };
      this.#store.insert(tx, { id, ...whose, ...times, createdAtMs: nowMs });
    });
    return id;
  }

  /** Ends or removes a window. Throws `not_found` for one that the owner did not set. */
  async remove(owner: Owner | null, id: string) {
    const { db, clock } = this.runtime;
    await db.commit((tx) => {
      const nowMs = clock.nowMs();
      const row = this.#store.of(owner).find((one) => one.id === id);
      if (row === undefined || (row.untilMs !== null && row.untilMs <= nowMs))
        throw new AppError("not_found", { message: "There is no maintenance window with this id." });
      if (row.untilMs === null) this.#store.remove(tx, id);
      else this.#store.end(tx, id, nowMs);
    });
  }

  #timesOf({ until, weekly }: NewWindow, nowMs: number) {
    if ((until === undefined) === (weekly === undefined)) throw refuse("until", "Give either until or weekly.");
    const none = { untilMs: null, days: null, fromMinute: null, toMinute: null, timeZone: null };
    if (until !== undefined) {
      const untilMs = Date.parse(until);
      if (!(untilMs > nowMs)) throw refuse("until", "The end is in the past.");
      if (untilMs - nowMs > QUIET_MS_MAX) throw refuse("until", "A maintenance window lasts 7 days at most.");
      return { ...none, untilMs };
    }
    const { days = [], from = "", to = "", time_zone: timeZone = "" } = weekly ?? {};
    const [fromMinute, toMinute] = [minuteOfDay(from), minuteOfDay(to)];
    if (days.length === 0) throw refuse("weekly.days", "Name at least one day: mon, tue, wed, thu, fri, sat, sun.");
    if (fromMinute === null) throw refuse("weekly.from", "A time such as 22:00 is needed.");
    if (toMinute === null) throw refuse("weekly.to", "A time such as 06:00 is needed.");
    if (fromMinute === toMinute) throw refuse("weekly.to", "The end equals the beginning.");
    if (!isTimeZone(timeZone)) throw refuse("weekly.time_zone", "A time zone such as Europe/Berlin is needed.");
    const named = WEEKDAYS.filter((day) => days.includes(day)).join(",");
    return { ...none, days: named, fromMinute, toMinute, timeZone };
  }
}
