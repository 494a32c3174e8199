// What somebody can do about a certificate that does not come, by the words of the gateway; draws nothing.

const advice: readonly (readonly [pattern: RegExp, text: string])[] = [
  [
    /limit is reached/,
    "The authority has been asked too often. It is tried again by itself; while you try things out, use an account for trials.",
  ],
  [
    /CAA record forbids/,
    "Change the CAA record of the domain so that it names this authority, or take it away.",
  ],
  [
    /look the name up|could not resolve|DNS problem|NXDOMAIN|no valid A/,
    "Make an A or AAAA record for the name that leads here, and wait until it is known everywhere.",
  ],
  [
    /external account binding/,
    "Get a key id and an HMAC key from the authority and enter them in the ACME account.",
  ],
  [/terms of service/, "Open the ACME account and agree to the terms again."],
  [/e-mail address/, "Correct the e-mail address of the ACME account."],
  [
    /TXT|DNS provider|zone|record/,
    "Open the DNS provider and test it with the zone: its page says what is wrong.",
  ],
  [
    /could not connect|TLS connection/,
    "The name must reach this gateway from the Internet on port 80 (or 443): look at the forwarding of your router and at firewalls.",
  ],
  [
    /wrong challenge response/,
    "Something else answers for this name: another server, or a proxy in front of this gateway.",
  ],
  [
    /no ACME account|account that is enabled/,
    "Create an ACME account; the certificate is ordered as soon as there is one.",
  ],
  [
    /cannot be reached|refused the connection|did not answer|cannot be resolved|not trusted/,
    "This gateway could not talk to the authority: look at its own connection to the Internet and its name servers.",
  ],
];

/** A sentence, or null when nothing is known. */
export const adviceFor = (error: string): string | null =>
  advice.find(([pattern]) => pattern.test(error))?.[1] ?? null;
