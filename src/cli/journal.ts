import { fstatSync } from "node:fs";
import type { LogLevel } from "../foundation/base/log.ts";
import type { Environment } from "../service/config.ts";

/** Priorities of syslog (sd-daemon(3)). */
const PRIORITIES: Readonly<Record<Exclude<LogLevel, "silent">, number>> = { error: 3, warn: 4, info: 6, debug: 7 };
const LEVEL = /^\{"at":"[^"]*","level":"(error|warn|info|debug)"/;
/** The message of a command that fails, as text or as JSON. */
const FAILURE = /^(postwarden: |\{"error":)/;
const STDERR = 2;

const levelOf = (text: string): keyof typeof PRIORITIES => {
  const level = LEVEL.exec(text)?.[1];
  if (level === "error" || level === "warn" || level === "debug") return level;
  return FAILURE.test(text) ? "error" : "info";
};

/** A text for the journal of systemd: the priority before each line, by which `journalctl -p` selects. */
export const withPriority = (text: string): string => {
  const prefix = `<${PRIORITIES[levelOf(text)]}>`;
  return text
    .split("\n")
    .map((line) => prefix + line)
    .join("\n");
};

const identityOf = (descriptor: number): string | null => {
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    // A closed descriptor is not the journal.
    return null;
  }
};

/**
 * Whether standard error goes to the journal of systemd: JOURNAL_STREAM names its device and inode (systemd.exec(5)). A process that
 * inherits the variable may write elsewhere.
 */
export const writesToJournal = ({ JOURNAL_STREAM }: Environment, descriptor: number = STDERR): boolean =>
  JOURNAL_STREAM !== undefined && JOURNAL_STREAM === identityOf(descriptor);
