import type { AccountStore } from "./store.ts";
import type { UserStore } from "./user-store.ts";

/** What the `keyId` of a caller begins with when it is a user of the dashboard. */
const USER_PREFIX = "user:";

/** Says what a caller is called: the name of an API key, or the address of a user; null for one that was removed. */
export const createCallerNames =
  (keys: Pick<AccountStore, "findKey">, users: Pick<UserStore, "find">) =>
  (keyId: string): string | null =>
    keyId.startsWith(USER_PREFIX)
      ? (users.find(keyId.slice(USER_PREFIX.length))?.user.email ?? null)
      : (keys.findKey(keyId)?.name ?? null);
