import type { TargetRow } from "../../blocklist/store.ts";
import { Button, PostForm } from "../components/form.tsx";
import { ButtonLink } from "../components/link.tsx";
import { countText } from "../components/number.tsx";
import { PageHead, Panel } from "../components/panel.tsx";

/** Asks before targets are removed: their history goes with them. */
export const ConfirmRemoval = ({
  targets,
  back,
  action = "/blocklists/bulk",
}: {
  readonly targets: readonly TargetRow[];
  readonly back: string;
  readonly action?: string;
}) => (
  <>
    <PageHead
      title={`Delete ${countText(targets.length, "target")}?`}
      crumbs={[["Blocklists", "/blocklists"]]}
      meta="Their history is deleted, too. This cannot be undone; to keep the history, pause them instead."
    />
    <Panel>
      <ul class="names">
        {targets.map(({ id, value, label, members }) => (
          <li key={id}>
            <span class="mono">{value}</span>
            {members !== null && <span class="soft"> {countText(members, "address", "addresses")}</span>}
            {label !== null && <span class="soft"> {label}</span>}
          </li>
        ))}
      </ul>
      <PostForm action={action} class="actions">
        {targets.map(({ id }) => (
          <input key={id} type="hidden" name="ids" value={id} />
        ))}
        <input type="hidden" name="back" value={back} />
        <input type="hidden" name="act" value="delete-confirmed" />
        <Button kind="danger" icon="trash-2">
          Delete
        </Button>
        <ButtonLink href={back === "" ? "/blocklists" : `/blocklists?${back}`}>Keep them</ButtonLink>
      </PostForm>
    </Panel>
  </>
);
