import type { AttentionItem } from "../foundation/base/attention.ts";
import type { Clock } from "../foundation/base/clock.ts";
import type { AuditEntry, AuditLog } from "./audit-store.ts";
import { CODES_GUESSED } from "./sessions.ts";
import type { UserRecord, UserStore } from "./user-store.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** How long the home page shows it; a new password ends it earlier. */
const SHOWN_MS = 7 * DAY_MS;
/** Entries of the audit log that are read. */
const ENTRIES_MAX = 200;
const NEW_PASSWORD: readonly string[] = ["users.password", "users.set-up", "users.reset", "users.remove"];

/** Whom somebody has guessed codes of, after the right password: for the home page, and whom to notify. */
export class GuessedCodes {
  constructor(
    private readonly clock: Clock,
    private readonly deps: { audit: AuditLog; users: UserStore },
  ) {}

  /** What a user sees: owners all users of the account, members themselves. */
  attention(viewer: { accountId: string; userId: string; isOwner: boolean }): AttentionItem[] {
    const { accountId, userId, isOwner } = viewer;
    const guessed = this.#entries(accountId, CODES_GUESSED);
    if (guessed.length === 0) return [];
    const renewed = NEW_PASSWORD.flatMap((action) => this.#entries(accountId, action));
    const isOver = ({ subject, id }: AuditEntry) => renewed.some((entry) => entry.subject === subject && entry.id > id);
    const latest = [...Map.groupBy(guessed, ({ subject }) => subject).values()].flatMap((entries) =>
      entries.slice(0, 1),
    );
    return latest.flatMap((entry) => {
      const user = this.deps.users.find(entry.subject ?? "")?.user;
      if (user === undefined || isOver(entry) || (!isOwner && user.id !== userId)) return [];
      return [itemOf(user, entry, user.id === userId)];
    });
  }

  /** The addresses of a user and of the owners of its account. */
  recipients(user: UserRecord): readonly string[] {
    const owners = this.deps.users.list(user.accountId).filter((one) => one.user.role === "owner");
    return [...new Set([user.email, ...owners.map((one) => one.user.email)])];
  }

  /** The newest first. */
  #entries(accountId: string, actionBegin: string): AuditEntry[] {
    const sinceMs = this.clock.nowMs() - SHOWN_MS;
    return this.deps.audit.list({ accountId, sinceMs, actionBegin }, { before: null, limit: ENTRIES_MAX });
  }
}

const itemOf = ({ email }: UserRecord, { atMs }: AuditEntry, isOwn: boolean): AttentionItem => ({
  severity: "bad",
  label: "Sign-in",
  sinceMs: atMs,
  title: isOwn ? "Wrong codes were entered for your user" : `Wrong codes were entered for ${email}`,
  detail: isOwn
    ? "They followed your right password. If it was not you, somebody knows your password: change it."
    : "They followed the right password. If it was not this user, somebody knows the password: reset it.",
  action: isOwn
    ? { text: "Change your password", path: "/settings/profile" }
    : { text: "Show the users", path: "/settings/users" },
});
