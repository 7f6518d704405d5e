import type { VerificationRow } from "../../verify/store.ts";
import { wordsOfReason } from "../verdict-words.ts";
import { Badge } from "./badge.tsx";

/** The reason of a verdict as a badge; grey while nothing is known. */
export const ResultBadge = ({ row }: { readonly row: Pick<VerificationRow, "status" | "subStatus"> }) => {
  if (row.status === "pending" || row.subStatus === null)
    return (
      <Badge kind="unknown" icon="clock">
        Waiting
      </Badge>
    );
  const { kind, label } = wordsOfReason(row.subStatus);
  return <Badge kind={kind}>{label}</Badge>;
};
