import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { FormContext, uploadPath, useField, usePage, CSRF_FIELD } from "../visit.ts";
import { manualHint } from "../../foundation/base/manual-hint.ts";
import { NO_MAIL_PROBLEM } from "../../foundation/mail/recipients.ts";
import { Icon, type IconName } from "./icon.tsx";
import { HelpText } from "./inline.tsx";

interface FormProps {
  /** A path of the dashboard without the prefix of test mode. */
  readonly action: string;
  readonly children: ComponentChildren;
  readonly class?: string;
  /** Of a form whose fields stand elsewhere on the page, by their `form` attribute. */
  readonly id?: string;
}

/**
 * A form that changes something. It carries the visitor's CSRF token. For a role that may not send it, a form with fields is
 * replaced by a sentence, and a single button by nothing.
 */
export const PostForm = ({ action, children, class: name, id }: FormProps) => {
  const { csrfToken, href, may } = usePage();
  if (!may(action)) return name === "form" ? <p class="soft">Only an owner of the account can change this.</p> : null;
  return (
    <form method="post" action={href(action)} class={name} id={id}>
      <input type="hidden" name={CSRF_FIELD} value={csrfToken} />
      <FormContext.Provider value={action}>{children}</FormContext.Provider>
    </form>
  );
};

/** A form behind a button, which is open when it is shown again with what is wrong with it. */
export const MoreForm = ({
  label,
  action,
  children,
}: {
  readonly label: string;
  readonly action: string;
  readonly children: ComponentChildren;
}) => (
  <details class="more" open={usePage().form?.action === action}>
    <summary class="button">{label}</summary>
    <PostForm action={action} class="form">
      {children}
    </PostForm>
  </details>
);

/** A form with files. Its body is a stream, so the CSRF token is in its URL. */
export const UploadForm = ({ action, children, class: name }: FormProps) => {
  const page = usePage();
  return (
    <form
      method="post"
      action={uploadPath(page.href(action), page)}
      class={name}
      enctype="multipart/form-data"
      data-upload
    >
      <FormContext.Provider value={action}>{children}</FormContext.Provider>
    </form>
  );
};

/** A form that only changes the URL: filters, ranges, search. */
export const GetForm = ({ action, children, class: name }: FormProps) => (
  <form method="get" action={usePage().href(action)} class={name}>
    {children}
  </form>
);

interface ButtonProps {
  readonly children: ComponentChildren;
  /** `main` for the one thing that the page is for, `danger` for what cannot be undone, `quiet` without a border. */
  readonly kind?: "main" | "plain" | "danger" | "quiet";
  readonly icon?: IconName;
  readonly name?: string;
  readonly value?: string;
  readonly title?: string;
  readonly isDisabled?: boolean;
  /** The id of the form that it submits, if that is elsewhere. */
  readonly form?: string;
  /** Where it sends the form, in place of the form's own action. */
  readonly action?: string;
}

/** The button that submits its form. */
export const Button = ({ children, kind = "plain", icon, isDisabled, action, ...button }: ButtonProps) => (
  <button
    {...{ type: "submit", ...button }}
    formaction={action}
    class={kind === "plain" ? "button" : `button ${kind}`}
    disabled={isDisabled}
  >
    {icon !== undefined && <Icon name={icon} />}
    {children}
  </button>
);

interface LabelProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly isRequired?: boolean;
  /** The label is for screen readers only. */
  readonly isLabelHidden?: boolean;
}

/** The id of a field: unique on the page, also where two forms send the same field to the same action. */
const useFieldId = (name: string): string => {
  const { fieldIds } = usePage();
  const id = `${useContext(FormContext)}-${name}`.replace(/[^A-Za-z0-9-]+/g, "-");
  const count = (fieldIds.get(id) ?? 0) + 1;
  fieldIds.set(id, count);
  return count === 1 ? id : `${id}-${count}`;
};

/** What describes a field to screen readers: its error and its hint. */
const describedBy = (id: string, { hint, error }: { hint: unknown; error: string | undefined }): string | undefined =>
  [error === undefined ? null : `${id}-error`, hint === undefined ? null : `${id}-hint`].filter(Boolean).join(" ") ||
  undefined;

interface LabelledProps extends LabelProps {
  readonly id: string;
  readonly error: string | undefined;
  readonly children: ComponentChildren;
}

const Labelled = ({ id, label, hint, error, isLabelHidden, children }: LabelledProps) => (
  <div class={error === undefined ? "field" : "field wrong"}>
    <label for={id} class={isLabelHidden === true ? "unseen" : undefined}>
      {label}
    </label>
    {children}
    {error !== undefined && (
      <p class="error" id={`${id}-error`}>
        <Icon name="circle-alert" /> <ErrorText text={error} />
      </p>
    )}
    {hint !== undefined && (
      <p class="hint" id={`${id}-hint`}>
        {hint}
      </p>
    )}
  </div>
);

const NO_MAIL_REMEDY = `This service does not send mail. Set POSTWARDEN_NOTIFY_SMTP_URL and POSTWARDEN_NOTIFY_FROM. See ${manualHint("webhooks-and-mail")}.`;

/** What is wrong; an operator reads what to set, and not whom to ask. */
const ErrorText = ({ text }: { readonly text: string }) => {
  const { mayOpen } = usePage();
  return <HelpText text={text === NO_MAIL_PROBLEM && mayOpen("/settings/service") ? NO_MAIL_REMEDY : text} />;
};

/** What is wrong with a group of checkboxes, when their form is shown again. */
export const GroupError = ({ name }: { readonly name: string }) => {
  const { error } = useField(name);
  return error === undefined ? null : (
    <p class="error" tabIndex={-1} autofocus>
      <Icon name="circle-alert" /> {error}
    </p>
  );
};

interface FieldProps extends LabelProps {
  readonly type?: "text" | "email" | "password" | "search" | "number" | "date" | "time" | "url" | "file";
  /** What it holds unless the form is shown again. */
  readonly value?: string | number | null;
  readonly placeholder?: string;
  readonly autocomplete?: string;
  readonly isMono?: boolean;
  readonly isMultiple?: boolean;
  readonly accept?: string;
  readonly hasFocus?: boolean;
  readonly min?: number | string;
  readonly max?: number | string;
}

/**
 * A text field with its label, its hint and, when the form is shown again, what was typed and what is wrong. The browser then
 * scrolls to the first wrong field, also without scripts.
 */
export const Field = ({ type = "text", value, ...props }: FieldProps) => {
  const { name, hint, isMono, hasFocus, isMultiple, isRequired, placeholder, autocomplete, accept, min, max } = props;
  const id = useFieldId(name);
  const { value: typed, error } = useField(name);
  const isSecret = type === "password" || type === "file";
  const shown = isSecret ? undefined : typeof typed === "string" ? typed : (value ?? undefined);
  return (
    <Labelled {...props} {...{ id, error }}>
      <input
        {...({ id, name, type, placeholder, accept, min, max, value: shown, required: isRequired } as object)}
        class={isMono === true ? "mono" : undefined}
        autocomplete={autocomplete ?? (type === "search" ? "off" : undefined)}
        spellcheck={false}
        autofocus={hasFocus === true || error !== undefined}
        multiple={isMultiple}
        aria-invalid={error === undefined ? undefined : "true"}
        aria-describedby={describedBy(id, { hint, error })}
      />
    </Labelled>
  );
};

interface TextAreaProps extends LabelProps {
  readonly value?: string | null;
  readonly placeholder?: string;
  readonly rows?: number;
  readonly isMono?: boolean;
}

export const TextAreaField = ({ value, rows = 4, isMono, placeholder, ...props }: TextAreaProps) => {
  const { name, hint, isRequired } = props;
  const id = useFieldId(name);
  const { value: typed, error } = useField(name);
  return (
    <Labelled {...props} {...{ id, error }}>
      <textarea
        {...{ id, name, rows, placeholder, required: isRequired, spellcheck: false }}
        autofocus={error !== undefined}
        class={isMono === true ? "mono" : undefined}
        aria-invalid={error === undefined ? undefined : "true"}
        aria-describedby={describedBy(id, { hint, error })}
      >
        {typeof typed === "string" ? typed : value}
      </textarea>
    </Labelled>
  );
};

interface SelectProps extends LabelProps {
  readonly value?: string | null;
  readonly options: ReadonlyArray<readonly [value: string, text: string]>;
  /** Sends the form when the choice changes, where scripts run. */
  readonly isImmediate?: boolean;
}

export const SelectField = ({ value, options, isImmediate, ...props }: SelectProps) => {
  const { name, hint } = props;
  const id = useFieldId(name);
  const { value: typed, error } = useField(name);
  const chosen = typeof typed === "string" ? typed : value;
  return (
    <Labelled {...props} {...{ id, error }}>
      <select
        {...{ id, name }}
        autofocus={error !== undefined}
        aria-invalid={error === undefined ? undefined : "true"}
        aria-describedby={describedBy(id, { hint, error })}
        data-submit={isImmediate}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === chosen}>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  );
};

interface CheckProps {
  readonly name: string;
  readonly label: ComponentChildren;
  readonly value?: string;
  readonly isChecked?: boolean;
  readonly hint?: ComponentChildren;
  /** The label is for screen readers only. */
  readonly isLabelHidden?: boolean;
  readonly form?: string;
  /** Sends the form when it is ticked or not, where scripts run. */
  readonly isImmediate?: boolean;
}

/** A checkbox. Several of one name are a list of their values. */
export const CheckField = ({ name, label, value = "on", isChecked, isImmediate, ...props }: CheckProps) => {
  const { hint, isLabelHidden, form } = props;
  const id = useFieldId(`${name}-${value}`);
  const { value: typed, error } = useField(name);
  const isTyped = typed === value || (Array.isArray(typed) && typed.includes(value));
  return (
    <div class="check">
      <input
        {...{ id, name, value, form }}
        type="checkbox"
        checked={typed === undefined ? isChecked : isTyped}
        data-submit={isImmediate}
      />
      <label for={id} class={isLabelHidden === true ? "unseen" : undefined}>
        {label}
        {hint !== undefined && <span class="hint">{hint}</span>}
      </label>
      {error !== undefined && value === "on" && (
        <p class="error">
          <Icon name="circle-alert" /> {error}
        </p>
      )}
    </div>
  );
};

/** How long somebody stops typing before filters apply. */
const TYPED_MS = 500;

/**
 * Fields and a button in one row: filters above a table. Where scripts run, they apply when a choice changes or somebody stops
 * typing, and the rest of the page follows in place.
 */
export const Filters = ({ action, children }: { readonly action: string; readonly children: ComponentChildren }) => {
  const { href, url } = usePage();
  const rows = new URLSearchParams(url.split("?")[1] ?? "").get("rows");
  const path = href(action);
  const apply = {
    "hx-get": path,
    "hx-trigger": `submit, input delay:${TYPED_MS}ms`,
    "hx-target": "main",
    "hx-select": "main",
    "hx-swap": "outerMorph",
    "hx-push-url": "true",
  };
  return (
    <form method="get" action={path} class="filters" {...apply}>
      {children}
      {rows !== null && <input type="hidden" name="rows" value={rows} />}
      <Button icon="search">Filter</Button>
    </form>
  );
};
