import type { IssuedKey } from "../../accounts/keys.ts";
import { CopyBlock } from "./copy.tsx";
import { ButtonLink, Badge } from "./inline.tsx";
import { Callout, PageHead, Panel } from "./panel.tsx";

/** Whether a key is for live or test data. */
export const ModeBadge = ({ mode }: Pick<IssuedKey, "mode">) => (
  <Badge kind={mode === "live" ? "ok" : "info"} icon={mode === "live" ? "key-round" : "flask-conical"}>
    {mode}
  </Badge>
);

const KEY_LIST = { path: "/settings/keys", text: "I have copied it" };

interface ShownKeyProps {
  readonly issued: IssuedKey;
  /** False for a new secret of an old key. */
  readonly isNew: boolean;
  readonly baseUrl: string;
  /** Where to go after copying it. */
  readonly next?: { readonly path: string; readonly text: string };
}

/** A key that was just made, which is shown this once, with a command that uses it. */
export const ShownKey = ({ issued, isNew, baseUrl, next = KEY_LIST }: ShownKeyProps) => {
  const command = `curl -s '${baseUrl}/v1/email-verifications' -H 'Authorization: Bearer ${issued.key}' -H 'Content-Type: application/json' -d '{"email":"someone@example.com"}'`;
  return (
    <>
      <PageHead title={issued.name} crumbs={[["API keys", "/settings/keys"]]} meta={<ModeBadge mode={issued.mode} />} />
      <Callout
        kind="ok"
        label={isNew ? "Created" : "Rotated"}
        title="Copy the key now: it is shown only once"
        actions={
          <ButtonLink href={next.path} kind="main">
            {next.text}
          </ButtonLink>
        }
      >
        <p>Only a hash of it is stored, so nobody can look it up later. If you lose it, rotate the key.</p>
        <CopyBlock text={issued.key} label="The key" />
      </Callout>
      <Panel title="Try it">
        <p>This verifies one address and prints the result.</p>
        <CopyBlock text={command} label="A command that verifies an address" />
      </Panel>
    </>
  );
};
