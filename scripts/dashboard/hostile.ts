/**
 * Texts that attack a page which shows them unescaped. Each runs `alert` or loads `XSS_MARK` in a page that does not escape: the
 * browser tests fail when a dialog opens, when anything is requested from elsewhere, or when the mark is an attribute or an element.
 */
export const XSS_MARK = "xssmark";

/** An element, an attribute that is broken out of, a script URL, and the end of a script or a comment. */
export const HOSTILE = {
  script: `<script>alert("${XSS_MARK}")</script>`,
  attribute: `"><img src=x onerror=alert("${XSS_MARK}")>`,
  single: `' onmouseover='alert("${XSS_MARK}")' x='`,
  link: `javascript:alert("${XSS_MARK}")`,
  end: `</script><svg onload=alert("${XSS_MARK}")><!--`,
  template: `{{constructor.constructor('alert("${XSS_MARK}")')()}}`,
} as const;

/** One line with all of them. */
export const HOSTILE_LINE = Object.values(HOSTILE).join(" ");

/** Characters that reorder, hide or break a line, besides markup. */
export const HOSTILE_UNICODE = `\u202Egnp.exe\u202C\u200B <b>${XSS_MARK}</b> 𝕏😀`;

/** As XML text. */
export const inXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
