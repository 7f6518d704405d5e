import { z } from "zod";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { Button, PostForm } from "../components/form.tsx";
import { Panel } from "../components/panel.tsx";
import { formAction, type PageRoute } from "../page.ts";
import { redirectTo } from "../visit.ts";
import { BULK_SENDERS_MAX } from "../../dmarc/domain-schemas.ts";
import type { DmarcPageUseCases } from "./use-cases.ts";

/** Whether the volume of a source is worth an alert, which its campaigns are not. */
export const BulkSender = ({ row, sourceKey }: { readonly row: DomainRow; readonly sourceKey: string }) => {
  const isBulk = row.bulkSenders.includes(sourceKey);
  return (
    <Panel title="Volume">
      <p class="soft">
        {isBulk
          ? "This is a bulk sender: no alert says that it sends more than usual."
          : "An alert says when far more of its mail passes than on any day before. Turn that off for a source of campaigns."}
      </p>
      <PostForm action={`/dmarc/${row.id}/sources/${encodeURIComponent(sourceKey)}/bulk`}>
        <input type="hidden" name="is" value={isBulk ? "no" : "yes"} />
        <Button>{isBulk ? "Not a bulk sender" : "Mark as bulk sender"}</Button>
      </PostForm>
    </Panel>
  );
};

export const bulkSenderPages = ({ domains }: DmarcPageUseCases): readonly PageRoute[] => [
  formAction(
    {
      path: "/dmarc/:id/sources/:key/bulk",
      params: z.object({ id: z.string(), key: z.string() }),
      form: z.object({ is: z.enum(["yes", "no"]) }),
    },
    async ({ viewer, params: { id, key }, form: { is } }) => {
      const back = `/dmarc/${id}/sources/${encodeURIComponent(key)}`;
      const others = domains.find(viewer.caller, id).bulkSenders.filter((one) => one !== key);
      if (is === "yes" && others.length >= BULK_SENDERS_MAX)
        return redirectTo(viewer, back, { bad: `At most ${BULK_SENDERS_MAX} sources can be bulk senders.` });
      await domains.change(viewer.caller, id, { bulkSenders: is === "yes" ? [...others, key] : others });
      const said = is === "yes" ? "Its volume raises no more alerts." : "Its volume raises alerts again.";
      return redirectTo(viewer, back, { ok: said });
    },
  ),
];
