import { usePage } from "../visit.ts";
import { PostForm } from "./form.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { Link } from "./inline.tsx";

/** Something that the menu of a row does: it sends a form, or leads to a page. Paths are without the prefix of test mode. */
export type RowAct = { readonly text: string; readonly icon: IconName } & (
  | { readonly href: string }
  | {
      readonly action: string;
      readonly fields?: Readonly<Record<string, string>>;
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
  const { text, icon } = act;
  if ("href" in act)
    return (
      <Link href={act.href}>
        <Icon name={icon} /> {text}
      </Link>
    );
  const { action, fields = {}, isFinal = false } = act;
  const form = (
    <PostForm action={action}>
      {Object.entries(fields).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      <button type="submit" class={isFinal ? "danger" : undefined}>
        <Icon name={icon} /> {isFinal ? `${text} for good` : text}
      </button>
    </PostForm>
  );
  if (!isFinal) return form;
  return (
    <details>
      <summary>
        <Icon name={icon} /> {text} …
      </summary>
      {form}
    </details>
  );
};
