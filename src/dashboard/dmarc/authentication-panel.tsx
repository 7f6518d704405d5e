import type { ShownReport } from "../../dmarc/insight/queries/report-schemas.ts";
import { Badge } from "../components/badge.tsx";
import { Panel } from "../components/panel.tsx";
import { authenticityWords, resultKind, spfSentence } from "./report-words.ts";

type Authenticity = NonNullable<ShownReport["authenticity"]>;

/** How the mail that brought a report was authenticated, in words. */
export const AuthenticationPanel = ({ report }: { readonly report: ShownReport }) => {
  const { authenticity } = report;
  const [kind, word] = authenticityWords(authenticity);
  return (
    <Panel title="Is it the reporter's?" aside={<Badge kind={kind}>{word}</Badge>}>
      {authenticity === null ? (
        <p class="soft">It was uploaded or imported by you, so it is trusted without its mail.</p>
      ) : authenticity.result === "pending" ? (
        <p class="soft">SPF, DKIM and DMARC of the mail that brought it are checked within minutes.</p>
      ) : (
        <Findings authenticity={authenticity} />
      )}
    </Panel>
  );
};

const Findings = ({ authenticity }: { readonly authenticity: Authenticity }) => {
  const { message, from, spf, dkim, dmarc } = authenticity;
  return (
    <>
      {message !== null && <p>{message}</p>}
      <ul class="checklist inner">
        <li>
          <Badge kind={spf === null ? "unknown" : resultKind(spf.result)}>{`SPF ${spf?.result ?? "unknown"}`}</Badge>
          <p class="small">
            {spf === null
              ? "The address of the server that delivered the mail is not known."
              : spfSentence(spf.result, spf.domain)}
          </p>
        </li>
        {dkim.length === 0 && (
          <li>
            <Badge kind="unknown">DKIM none</Badge>
            <p class="small">The mail has no signature.</p>
          </li>
        )}
        {dkim.map(({ domain, selector, result, aligned }, at) => (
          <li key={at}>
            <Badge kind={resultKind(result)}>{`DKIM ${result}`}</Badge>
            <p class="small">
              Signed by <span class="mono">{domain ?? "an unknown domain"}</span>
              {selector !== null && (
                <>
                  {" "}
                  with the key <span class="mono">{selector}</span>
                </>
              )}
              , {aligned ? "which is the domain in From or belongs to it" : "which is not the domain in From"}.
            </p>
          </li>
        ))}
        <li>
          <Badge
            kind={dmarc === null ? "unknown" : resultKind(dmarc.result)}
          >{`DMARC ${dmarc?.result ?? "unknown"}`}</Badge>
          <p class="small">
            {from === null ? (
              "The mail does not have exactly one domain in From."
            ) : (
              <>
                From <span class="mono">{from}</span>
                {dmarc !== null &&
                  (dmarc.policy === null ? ", which has no DMARC policy." : `, whose policy is p=${dmarc.policy}.`)}
              </>
            )}
          </p>
        </li>
      </ul>
    </>
  );
};
