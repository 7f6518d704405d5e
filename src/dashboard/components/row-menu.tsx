import { CSRF_FIELD, usePage } from "../visit.ts";
import { Icon, type IconName } from "./icon.tsx";
import { Link } from "./inline.tsx";

/** Something that the menu of a row does: it sends a form, or leads to a page. Paths are without the prefix of test mode. */
export type RowAct = { readonly text: string; readonly icon: IconName } & (
  | { readonly href: string }
  | {
      readonly action: string;
      /** What it sends. */
      readonly field?: readonly [name: string, value: string];
      /** The act cannot be undone, so the menu asks first. */
      readonly isFinal?: boolean;
    }
);

export interface RowMenuProps {
  /** What the row is about, for screen readers. */
  readonly about: string;
  /** What can be copied: "Copy the address". */
  readonly copy?: { readonly text: string; readonly label: string };
  readonly acts: readonly RowAct[];
}

const FORM = "row-form";

/** The form that the menus of all rows of a page send: its fields and where it goes come from the button. */
export const RowForm = () => {
  const { csrfToken, fieldIds } = usePage();
  if (fieldIds.has(FORM)) return null;
  fieldIds.set(FORM, 1);
  return (
    <form method="post" id={FORM}>
      <input type="hidden" name={CSRF_FIELD} value={csrfToken} />
    </form>
  );
};

/** What can be done with a row, behind a button. It opens without scripts too; copying needs them. */
export const RowMenu = ({ about, copy, acts }: RowMenuProps) => {
  const { may, mayOpen } = usePage();
  const allowed = acts.filter((act) => ("href" in act ? mayOpen(act.href) : may(act.action)));
  if (allowed.length === 0 && copy === undefined) return null;
  return (
    <details class="row-menu">
      <summary aria-label={`Actions for ${about}`}>
        <Icon name="ellipsis" />
      </summary>
      <div class="row-menu-items">
        {copy !== undefined && (
          <button type="button" data-copy={copy.text} hidden>
            <Icon name="copy" />
            <span>{copy.label}</span>
          </button>
        )}
        {allowed.map((act) => (
          <RowActItem key={act.text} act={act} />
        ))}
      </div>
    </details>
  );
};

const RowActItem = ({ act }: { readonly act: RowAct }) => {
  const { href } = usePage();
  const { text, icon } = act;
  if ("href" in act)
    return (
      <Link href={act.href}>
        <Icon name={icon} /> {text}
      </Link>
    );
  const { action, field: [name, value] = [], isFinal = false } = act;
  const button = (
    <button {...{ form: FORM, formaction: href(action), name, value }} class={isFinal ? "danger" : undefined}>
      <Icon name={icon} /> {isFinal ? `${text} for good` : text}
    </button>
  );
  if (!isFinal) return button;
  return (
    <details>
      <summary>
        <Icon name={icon} /> {text} …
      </summary>
      {button}
    </details>
  );
};
