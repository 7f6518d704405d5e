import type { ComponentChildren } from "preact";
import { z } from "zod";
import { FORM_DEFAULTS, FORM_LIMIT_MAX, type FormSettings } from "../../accounts/form-keys.ts";
import type { OwnKey, OwnKeys } from "../../accounts/keys.ts";
import { FORM_CHECKS, type FormRules } from "../../foundation/base/form-rules.ts";
import { manualHint } from "../../foundation/base/manual-hint.ts";
import { CopyBlock } from "../components/copy.tsx";
import { numberText } from "../components/figures.tsx";
import { Button, Field, PostForm, SelectField, TextAreaField } from "../components/form.tsx";
import { HelpText } from "../components/inline.tsx";
import { Panel, Row } from "../components/panel.tsx";
import { formAction } from "../page.ts";
import { redirectTo, type View, type Viewer } from "../visit.ts";

const LIMIT = `Must be a whole number from 1 to ${FORM_LIMIT_MAX}`;
const limit = z.coerce.number(LIMIT).int(LIMIT).min(1, LIMIT).max(FORM_LIMIT_MAX, LIMIT);

/** What a publishable key may do, as its form sends it. */
const formKeySchema = z.object({
  origins: z.string(),
  visitor_per_hour: limit,
  per_day: limit,
  check: z.enum(FORM_CHECKS),
});

/** A new publishable key. */
const newFormKeySchema = formKeySchema.extend({ name: z.string().trim(), mode: z.enum(["live", "test"]) });

/** The settings that a form names. */
const formSettingsOf = (form: z.output<typeof formKeySchema>): FormSettings => ({
  origins: form.origins.split(/\s+/).filter((origin) => origin !== ""),
  visitorPerHour: form.visitor_per_hour,
  perDay: form.per_day,
  check: form.check,
});

export const keyPath = z.object({ id: z.uuid() });

interface KeyViews {
  readonly list: (viewer: Viewer) => View;
  readonly one: (request: Request, viewer: Viewer, id: string) => View;
}

/** The forms that create and change publishable keys. */
export const createFormKeyForms = (keys: OwnKeys, { list, one }: KeyViews) => [
  formAction(
    { path: "/settings/keys/publishable", form: newFormKeySchema },
    ({ viewer, form: { name, mode, ...form } }) => {
      const { id } = keys.create(viewer.account.id, { name, mode, forms: formSettingsOf(form) }, viewer.user.id);
      return redirectTo(viewer, `/settings/keys/${id}`, { ok: "The key is created. Put it into your page." });
    },
    { rerender: ({ viewer }) => list(viewer) },
  ),
  formAction(
    { path: "/settings/keys/:id/publishable", params: keyPath, form: formKeySchema },
    ({ viewer, params, form }) => {
      keys.changeForms(viewer.account.id, params.id, { ...formSettingsOf(form), by: viewer.user.id });
      return redirectTo(viewer, `/settings/keys/${params.id}`, { ok: "Saved." });
    },
    { rerender: ({ request, viewer, params }) => one(request, viewer, params.id) },
  ),
];

const CHECKS = [
  ["mailbox", "The mailbox, at the mail server"],
  ["domain", "The domain only, without credits"],
] as const;

const SettingFields = ({ forms }: { readonly forms: FormSettings }) => (
  <>
    <TextAreaField
      name="origins"
      label="Origins"
      hint="One in a line, such as https://www.example.com, without a path. Browsers refuse the key on all other pages."
      value={forms.origins.join("\n")}
      rows={3}
      isMono
      isRequired
    />
    <SelectField
      name="check"
      label="What is checked"
      hint="The domain only: syntax, mail hosts in DNS and disposable domains."
      value={forms.check}
      options={CHECKS}
    />
    <Field
      name="visitor_per_hour"
      label="Addresses of a visitor in an hour"
      type="number"
      {...{ min: 1, max: FORM_LIMIT_MAX, value: forms.visitorPerHour, isRequired: true }}
    />
    <Field
      name="per_day"
      label="Addresses in a day"
      hint="From all visitors together. It limits what strangers can spend who copy the key."
      type="number"
      {...{ min: 1, max: FORM_LIMIT_MAX, value: forms.perDay, isRequired: true }}
    />
  </>
);

export const CreateFormKey = ({ mode }: Pick<Viewer, "mode">) => (
  <Panel title="Create a publishable key">
    <PostForm action="/settings/keys/publishable" class="form">
      <p>
        <HelpText text={`For sign-up forms on your pages. See ${manualHint("sign-up-forms")}.`} />
      </p>
      <Field name="name" label="Name" hint="The form that will use it." isRequired />
      <SelectField
        name="mode"
        label="Mode"
        value={mode}
        options={[
          ["live", "Live: real addresses"],
          ["test", "Test: fixed results, free"],
        ]}
      />
      <SettingFields forms={{ ...FORM_DEFAULTS, origins: [] }} />
      <Button icon="plus">Create publishable key</Button>
    </PostForm>
  </Panel>
);

/** What a publishable key may do, as rows. */
export const FormKeyRows = ({ forms }: { readonly forms: FormRules }) => (
  <>
    <Row label="Origins">
      <span class="mono">{forms.origins.join(" ")}</span>
    </Row>
    <Row label="What is checked">{Object.fromEntries(CHECKS)[forms.check]}</Row>
    <Row label="Addresses of a visitor in an hour">{numberText(forms.visitorPerHour)}</Row>
    <Row label="Addresses in a day">{numberText(forms.perDay)}</Row>
  </>
);

const snippetOf = (key: string, url: string): string =>
  `<script src="${url}/widget.js" data-key="${key}" defer></script>

<form data-postwarden>
  <label for="email">Email</label>
  <input type="email" id="email" name="email" autocomplete="email">
</form>`;

interface FormKeyProps {
  readonly apiKey: Pick<OwnKey, "id" | "mode">;
  readonly forms: FormRules;
  readonly url: string;
  /** Panels that every key has. */
  readonly children: ComponentChildren;
}

/** The snippet for pages, a form to try it, and the settings. */
export const FormKeyPanels = ({ apiKey: { id, mode }, forms, url, children }: FormKeyProps) => (
  <>
    <Panel title="Put it into your page">
      <p>
        The script watches the email field of every form with <code>data-postwarden</code>, and says below the field
        what is wrong. It never holds the form back.
      </p>
      <CopyBlock text={snippetOf(forms.key, url)} label="The snippet" />
      <p>If your page has a content security policy, add:</p>
      <CopyBlock text={`script-src ${url}; connect-src ${url}`} label="For the content security policy" />
      {url.startsWith("http:") && (
        <p class="soft">
          This service is reached without HTTPS. Browsers do not load the script into pages that use HTTPS.
        </p>
      )}
    </Panel>
    <div class="columns even">
      <div class="stack">
        <Panel title="Try it" id="try">
          <form class="form" method="get" data-postwarden="">
            <Field name="email" label="Email" type="email" placeholder="someone@gmial.com" autocomplete="off" />
            <p class="hint" data-tried="">
              {mode === "live" && forms.check === "mailbox"
                ? "Leave the field with Tab. Each address costs a credit."
                : "Leave the field with Tab."}
            </p>
            <script src="/widget.js" data-key={forms.key} defer />
          </form>
        </Panel>
        {children}
      </div>
      <Panel title="Change">
        <PostForm action={`/settings/keys/${id}/publishable`} class="form">
          <SettingFields forms={forms} />
          <Button>Save</Button>
        </PostForm>
      </Panel>
    </div>
  </>
);
