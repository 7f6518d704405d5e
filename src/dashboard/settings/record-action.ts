import type { AuditedAction } from "../../accounts/audit-log.ts";
import type { Viewer } from "../page.ts";

/** Writes what a user did into the audit log, where the use case does not. */
export type RecordAction = (viewer: Viewer, action: Omit<AuditedAction, "accountId" | "by">) => void;
