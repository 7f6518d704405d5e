import { z } from "zod";
import type { IssuedKey, OwnKey, OwnKeys } from "../../accounts/keys.ts";
import { DAY_MS } from "../../foundation/base/days.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { UrlOfRequest } from "../../foundation/http/request-target.ts";
import { SCOPES } from "../../foundation/http/scopes.ts";
import { Empty, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Button, CheckField, Field, GroupError, PostForm, SelectField } from "../components/form.tsx";
import { createFormKeyForms, CreateFormKey, FormKeyPanels, FormKeyRows, keyPath } from "./form-keys.tsx";
import { Link, Badge } from "../components/inline.tsx";
import { ModeBadge, ShownKey } from "../components/shown-key.tsx";
import { Table, type TableRow } from "../components/table.tsx";
import { Time } from "../components/figures.tsx";
import { usePage, type View, type Viewer, redirectTo } from "../visit.ts";
import { formAction, page, flag, listOf } from "../page.ts";

export interface KeyUseCases {
  readonly clock: Clock;
  readonly keys: OwnKeys;
  readonly urlOf: UrlOfRequest;
}

const HOUR_MS = 60 * 60_000;
const GRACES: ReadonlyArray<readonly [value: string, text: string]> = [
  ["0", "at once"],
  [String(HOUR_MS), "after an hour"],
  [String(DAY_MS), "after a day"],
  [String(7 * DAY_MS), "after 7 days"],
];
const createForm = z.object({
  name: z.string().trim(),
  mode: z.enum(["live", "test"]),
  scopes: listOf(z.string()),
  expires: z.iso.date().or(z.literal("")).default(""),
});

/** API keys of the account, for its owners. */
export const createKeyPages = ({ clock, keys, urlOf }: KeyUseCases) => {
  const list = (viewer: Viewer): View => ({
    title: "API keys",
    section: "settings",
    body: <KeyList keys={keys.list(viewer.account.id, clock.nowMs())} mode={viewer.mode} />,
  });
  const one = (request: Request, viewer: Viewer, id: string): View => {
    const key = keys.find(viewer.account.id, id, clock.nowMs());
    return { title: key.name, section: "settings", body: <KeyPage apiKey={key} url={urlOf(request)} /> };
  };
  const shown = (request: Request, issued: IssuedKey, isNew: boolean): View => ({
    title: "Copy the key",
    section: "settings",
    isShownOnce: true,
    body: <ShownKey {...{ issued, isNew }} baseUrl={urlOf(request)} />,
  });
  return [
    ...createFormKeyForms(keys, { list, one }),
    page({ path: "/settings/keys" }, ({ viewer }) => list(viewer)),
    formAction(
      { path: "/settings/keys", form: createForm },
      ({ request, viewer, form: { expires, ...form } }) => {
        const expiresAtMs = expires === "" ? null : Date.parse(`${expires}T23:59:59Z`);
        return shown(request, keys.create(viewer.account.id, { ...form, expiresAtMs }, viewer.user.id), true);
      },
      { rerender: ({ viewer }) => list(viewer) },
    ),
    page({ path: "/settings/keys/:id", params: keyPath }, ({ request, viewer, params }) =>
      one(request, viewer, params.id),
    ),
    formAction(
      {
        path: "/settings/keys/:id/rotate",
        params: keyPath,
        form: z.object({ grace: z.enum(GRACES.map(([value]) => value)) }),
      },
      ({ request, viewer, params, form }) => {
        const rotation = { graceMs: Number(form.grace), by: viewer.user.id };
        const issued = keys.rotate(viewer.account.id, params.id, rotation);
        if (issued.forms === null) return shown(request, issued, false);
        return redirectTo(viewer, `/settings/keys/${params.id}`, { ok: "The key is new. Put it into your page." });
      },
      { rerender: ({ request, viewer, params }) => one(request, viewer, params.id) },
    ),
    formAction(
      {
        path: "/settings/keys/:id/revoke",
        params: keyPath,
        form: z.object({ sure: flag.refine((isSure) => isSure, "Tick the box to revoke the key") }),
      },
      ({ viewer, params }) => {
        const { name } = keys.revoke(viewer.account.id, params.id, viewer.user.id);
        return redirectTo(viewer, "/settings/keys", { ok: `The key "${name}" is revoked.` });
      },
      { rerender: ({ request, viewer, params }) => one(request, viewer, params.id) },
    ),
  ];
};

const KeyState = ({ apiKey }: { readonly apiKey: OwnKey }) => {
  const { nowMs } = usePage();
  const { revokedAtMs, expiresAtMs } = apiKey;
  if (revokedAtMs !== null)
    return (
      <Badge kind="unknown" icon="ban">
        revoked
      </Badge>
    );
  if (expiresAtMs === null) return <>never</>;
  if (expiresAtMs <= nowMs) return <Badge kind="warn">expired</Badge>;
  return <Time atMs={expiresAtMs} style="day" />;
};

const scopeText = (scopes: readonly string[]): string =>
  scopes.length === SCOPES.length ? "all" : scopes.length > 2 ? `${scopes.length} scopes` : scopes.join(", ");

const originText = ([first = "", ...others]: readonly string[]): string =>
  others.length === 0 ? first : `${others.length + 1} origins`;

const rowOf = (apiKey: OwnKey): TableRow => {
  const { id, name, mode, scopes, ending, lastUsedAtMs, forms } = apiKey;
  return {
    key: id,
    cells: [
      <>
        <Link href={`/settings/keys/${id}`} class="key-name">
          {name}
        </Link>
        <span class="second">
          <ModeBadge mode={mode} /> {forms !== null && <Badge kind="info">publishable</Badge>} ends in{" "}
          <span class="mono">{ending}</span>
        </span>
      </>,
      forms === null ? (
        <span title={scopes.join(", ")}>{scopeText(scopes)}</span>
      ) : (
        <span title={forms.origins.join(" ")}>{originText(forms.origins)}</span>
      ),
      lastUsedAtMs === null ? <span class="soft">never</span> : <Time atMs={lastUsedAtMs} />,
      <KeyState apiKey={apiKey} />,
    ],
  };
};

const KeyList = ({ keys, mode }: { readonly keys: readonly OwnKey[]; readonly mode: Viewer["mode"] }) => (
  <>
    <PageHead
      title="API keys"
      meta="A key gives a program access to this account. Live keys verify real addresses and cost credits; test keys return fixed results."
    />
    <Columns
      side={
        <>
          <CreateKey mode={mode} />
          <CreateFormKey mode={mode} />
        </>
      }
    >
      <Panel title="Keys" isFlush>
        {keys.length === 0 ? (
          <Empty title="No keys yet">
            <p>Create a test key to try the API without credits, then a live one.</p>
          </Empty>
        ) : (
          <Table
            caption="API keys"
            columns={[
              { title: "Name", isMain: true },
              { title: "Scopes or origins" },
              { title: "Last used" },
              { title: "Expires" },
            ]}
            rows={keys.map(rowOf)}
          />
        )}
      </Panel>
    </Columns>
  </>
);

const CreateKey = ({ mode }: { readonly mode: Viewer["mode"] }) => (
  <Panel title="Create a key">
    <PostForm action="/settings/keys" class="form">
      <Field name="name" label="Name" hint="What will use it, such as “shop” or “newsletter”." isRequired />
      <SelectField
        name="mode"
        label="Mode"
        value={mode}
        options={[
          ["live", "Live: real addresses, costs credits"],
          ["test", "Test: fixed results, free"],
        ]}
      />
      <fieldset>
        <legend>Scopes</legend>
        {SCOPES.map((scope) => (
          <CheckField key={scope} name="scopes" value={scope} label={scope} isChecked />
        ))}
        <GroupError name="scopes" />
      </fieldset>
      <Field name="expires" label="Last day" type="date" hint="Empty: it does not expire." />
      <Button kind="main" icon="plus">
        Create key
      </Button>
    </PostForm>
  </Panel>
);

const KeyPage = ({ apiKey, url }: { readonly apiKey: OwnKey; readonly url: string }) => {
  const { forms, id, name, mode, scopes, ending, lastUsedAtMs, createdAtMs, revokedAtMs, oldSecretUntilMs } = apiKey;
  return (
    <>
      <PageHead title={name} crumbs={[["API keys", "/settings/keys"]]} meta={<ModeBadge mode={mode} />} />
      <Panel title="This key" isFlush>
        <Rows>
          <Row label="Ends in">
            <span class="mono">…{ending}</span>
          </Row>
          {forms === null ? <Row label="Scopes">{scopes.join(", ")}</Row> : <FormKeyRows forms={forms} />}
          <Row label="Created">
            <Time atMs={createdAtMs} style="full" />
          </Row>
          <Row label="Last used">{lastUsedAtMs === null ? "never" : <Time atMs={lastUsedAtMs} />}</Row>
          <Row label="Expires">
            <KeyState apiKey={apiKey} />
          </Row>
          {oldSecretUntilMs !== null && (
            <Row label="Old secret works until">
              <Time atMs={oldSecretUntilMs} style="full" />
            </Row>
          )}
        </Rows>
      </Panel>
      {revokedAtMs !== null ? null : forms === null ? (
        <div class="columns even">
          <ChangeKey id={id} />
        </div>
      ) : (
        <FormKeyPanels {...{ apiKey, forms, url }}>
          <ChangeKey id={id} />
        </FormKeyPanels>
      )}
    </>
  );
};

const ChangeKey = ({ id }: { readonly id: string }) => (
  <>
    <Panel title="Rotate">
      <PostForm action={`/settings/keys/${id}/rotate`} class="form">
        <p>Replaces the secret. Name, usage and rate limit of the key stay.</p>
        <SelectField name="grace" label="The old secret stops working" value={String(DAY_MS)} options={GRACES} />
        <Button icon="refresh-cw">Rotate key</Button>
      </PostForm>
    </Panel>
    <Panel title="Revoke">
      <PostForm action={`/settings/keys/${id}/revoke`} class="form">
        <p>Requests with this key are refused from now on. This cannot be undone.</p>
        <CheckField name="sure" label="Nothing uses this key any more" />
        <Button kind="danger" icon="trash-2">
          Revoke key
        </Button>
      </PostForm>
    </Panel>
  </>
);
