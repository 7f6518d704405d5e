import { Button, PostForm } from "../components/form.tsx";
import { ButtonLink } from "../components/link.tsx";
import { countText, numberText } from "../components/number.tsx";
import { Callout } from "../components/panel.tsx";
import type { AddressListPageProps } from "./list-page-props.ts";

const ConfirmForm = ({ action, label }: { readonly action: string; readonly label: string }) => (
  <PostForm action={action}>
    <Button kind="danger">{label}</Button>
  </PostForm>
);

/** Asks before a list is cancelled, deleted or verified again. */
export const ConfirmPanel = ({ confirm, job, credits }: AddressListPageProps) => {
  if (confirm === null) return null;
  const path = `/lists/${job.id}`;
  const back = <ButtonLink href={path}>Keep it as it is</ButtonLink>;
  if (confirm.kind === "cancel")
    return (
      <Callout
        kind="warn"
        title="Cancel this list?"
        actions={[<ConfirmForm key="do" action={`${path}/cancel`} label="Cancel the list" />, back]}
      >
        {countText(job.addressesTotal - job.addressesFinished, "address", "addresses")} will not be verified;{" "}
        {countText(credits.held, "credit")} will be released. What is finished stays. A cancelled list cannot be
        resumed.
      </Callout>
    );
  if (confirm.kind === "delete")
    return (
      <Callout
        kind="bad"
        title="Delete this list?"
        actions={[<ConfirmForm key="do" action={`${path}/delete`} label="Delete the list" />, back]}
      >
        Its {countText(job.rowsTotal, "row")}, results and evidence are removed for good. Download the results first if
        you need them.
      </Callout>
    );
  const { addresses, available } = confirm;
  const cost =
    job.mode === "test"
      ? "free of charge in test mode"
      : `${countText(addresses, "credit")} of ${numberText(available)}`;
  return (
    <Callout
      kind={addresses > available ? "bad" : "info"}
      title={`Verify ${countText(addresses, "unsettled address", "unsettled addresses")} again?`}
      actions={[
        addresses <= available && (
          <PostForm key="do" action={`${path}/retry`}>
            <Button kind="main">Verify again</Button>
          </PostForm>
        ),
        back,
      ]}
    >
      {addresses > available ? "There are not enough credits: " : "Cost: "}
      {cost}. Their present results are removed. Addresses whose mail server does not respond are not charged.
    </Callout>
  );
};
