import type { WebhookSecret } from "../../notifications/webhooks/secret-store.ts";
import { CopyBlock } from "../components/copy.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { Callout, PageHead, Panel } from "../components/panel.tsx";
import { Time } from "../components/time.tsx";

/** The secrets that sign events; null until they are asked for. */
export const SecretPage = ({ secrets }: { readonly secrets: readonly WebhookSecret[] | null }) => (
  <>
    <PageHead
      title="Signing secret"
      crumbs={[["Webhooks", "/webhooks"]]}
      meta="Receivers check with it that an event is from here (Standard Webhooks: the header webhook-signature)."
    />
    {secrets === null ? <Hidden /> : secrets.map((secret) => <Secret key={secret.id} {...secret} />)}
    <Rotate />
  </>
);

const Hidden = () => (
  <Panel title="Secret">
    <p>Whoever knows the secret can send events in our name. Show it only when you need it.</p>
    <PostForm action="/webhooks/secret/show">
      <Button kind="main" icon="eye">
        Show the secret
      </Button>
    </PostForm>
  </Panel>
);

const Secret = ({ secret, createdAtMs, validUntilMs }: WebhookSecret) => (
  <Panel
    title={validUntilMs === null ? "Current secret" : "Old secret"}
    aside={
      <>
        created <Time atMs={createdAtMs} style="full" />
      </>
    }
  >
    <CopyBlock text={secret} label={validUntilMs === null ? "Current secret" : "Old secret"} />
    {validUntilMs !== null && (
      <p>
        Also signs every event until <Time atMs={validUntilMs} style="full" />. Set the current secret at the receivers
        until then.
      </p>
    )}
  </Panel>
);

const Rotate = () => (
  <Callout
    kind="info"
    title="Create a new secret"
    actions={
      <PostForm action="/webhooks/secret/rotate">
        <Button icon="refresh-cw">Create a new secret</Button>
      </PostForm>
    }
  >
    <p>
      Do this when somebody who should not know it has seen it. For 24 hours every event has both signatures, so that
      receivers keep working while you change them.
    </p>
  </Callout>
);
