/** `realtime`: a client waits for the response; such work comes first. */
export type Priority = "realtime" | "bulk";

/** For whom something is done. `account` is an account's id; null where there is one user only (the command line, tests). */
export interface OnBehalfOf {
  readonly account: string | null;
  readonly priority: Priority;
}

/** The service itself, or the only user. */
export const OPERATOR: OnBehalfOf = { account: null, priority: "realtime" };
