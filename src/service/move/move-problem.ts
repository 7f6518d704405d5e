import { megabytes } from "../../foundation/db/backup.ts";

/** Why an account was not written to a file, or not taken from one. */
export type MoveProblem =
  | { readonly kind: "enabled"; readonly name: string }
  | { readonly kind: "open_work"; readonly work: readonly string[] }
  | { readonly kind: "file_exists" }
  | { readonly kind: "no_room"; readonly folder: string; readonly freeBytes: number }
  | { readonly kind: "no_account_file" }
  | { readonly kind: "damaged"; readonly detail: string }
  | { readonly kind: "other_schema"; readonly has: number; readonly knows: number }
  | { readonly kind: "account_exists"; readonly name: string; readonly isDeleted: boolean }
  | { readonly kind: "name_exists"; readonly name: string }
  | { readonly kind: "users_exist"; readonly emails: readonly string[] }
  | { readonly kind: "keys_exist"; readonly keys: number }
  /** Something else is unique and there already: what SQLite says. */
  | { readonly kind: "row_exists"; readonly detail: string }
  /** The rows on both sides are not the same. */
  | { readonly kind: "differs"; readonly detail: string };

const NOTHING = "Nothing was changed.";

/** A sentence for each problem with `file`, and what to do. */
export const describeMoveProblem = (file: string, problem: MoveProblem): string => {
  switch (problem.kind) {
    case "enabled":
      return `The account "${problem.name}" is enabled: its keys and users could still change it. First run: postwarden accounts disable "${problem.name}"`;
    case "open_work":
      return `The account has open work: ${problem.work.join(", ")}. Let the running service end it, then run this again.`;
    case "file_exists":
      return `${file} exists already. Choose another name.`;
    case "no_room":
      return `Not enough disk space in ${problem.folder}: ${megabytes(problem.freeBytes)} free. Free some space. ${NOTHING}`;
    case "no_account_file":
      return `${file} was not written by \`postwarden accounts move\`.`;
    case "damaged":
      return `${file} is damaged: ${problem.detail}. Copy it again, or write it anew. ${NOTHING}`;
    case "other_schema":
      return `${file} has ${problem.has} migrations, and this version ${problem.knows}. Install the same version on both instances, and write the file anew. ${NOTHING}`;
    case "account_exists":
      return problem.isDeleted
        ? `The account "${problem.name}" was on this instance before: its ledger stayed when it was deleted, and cannot be there twice. ${NOTHING}`
        : `The account is here already, under the name "${problem.name}". ${NOTHING}`;
    case "name_exists":
      return `Another account has the name "${problem.name}". Rename one of them: postwarden accounts rename. ${NOTHING}`;
    case "users_exist":
      return `These users are on this instance already, and one person has one user: ${problem.emails.join(", ")}. Remove them on one side: postwarden users remove. ${NOTHING}`;
    case "keys_exist":
      return `${problem.keys} of its API keys are on this instance already. ${NOTHING}`;
    case "row_exists":
      return `Something of the account is on this instance already (${problem.detail}). ${NOTHING}`;
    case "differs":
      return `The rows on both sides are not the same (${problem.detail}). ${NOTHING} Report this.`;
    default:
      return problem satisfies never;
  }
};
