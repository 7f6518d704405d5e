import { parseAddress } from "../foundation/mail/address.ts";
import type { UserRecord, UserRole } from "./user-store.ts";

/** A user of the dashboard, without secrets. */
export interface User {
  readonly id: string;
  readonly accountId: string;
  readonly email: string;
  readonly role: UserRole;
  /** Whether it also sees what concerns the whole service. */
  readonly isOperator: boolean;
  /** Whether a password is set; until then a set-up link is open or has expired. */
  readonly hasPassword: boolean;
  /** Whether sign-in asks for a code, too. */
  readonly hasSecondFactor: boolean;
  readonly recoveryCodesLeft: number;
  /** IANA name; null: not chosen. */
  readonly timeZone: string | null;
  readonly createdAtMs: number;
  readonly lastSignInAtMs: number | null;
}

/** What leaves the slice of a stored user. */
export const userOf = (record: UserRecord): User => ({
  ...{ id: record.id, accountId: record.accountId, email: record.email, role: record.role },
  ...{ isOperator: record.isOperator, timeZone: record.timeZone, createdAtMs: record.createdAtMs },
  hasPassword: record.passwordHash !== null,
  hasSecondFactor: record.totpConfirmedAtMs !== null,
  recoveryCodesLeft: record.recoveryCodes.length,
  lastSignInAtMs: record.lastSignInAtMs,
});

/** The spelling under which an email address is stored and found; null for a text that is not an address. */
export const normalizedEmail = (text: string): string | null => {
  const address = parseAddress(text);
  return address.ok ? address.value.normalized : null;
};
