// Redirects of targets: a rewritten one leads to the client's address, and only one with the target's address is rewritten.
import { FieldList } from "../../../src/http/field-list.ts";
import fc from "fast-check";
import { withClientAddress } from "../../../src/dataplane/request/redirect-address.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

type Arguments = Parameters<typeof withClientAddress>;

interface Input {
  readonly location: string;
  readonly authority: string;
  readonly isSecure: boolean;
  readonly clientHost: string;
  readonly clientScheme: "http" | "https";
  readonly prefix: string;
  readonly replacement: string | null;
  readonly base: string;
}

const authority = fc.constantFrom(
  ...["10.0.0.5:8080", "10.0.0.5", "app.internal", "app.internal:80", "app.internal:443"],
  ...["[2001:db8::5]:8080", "[2001:db8::5]", "localhost"],
);
const piece = fc.constantFrom(
  ...["http", "https", "HTTP", ":", "://", "/", "//", "\\", "@", "user:secret@", "?", "#", "."],
  ...["10.0.0.5", ":8080", ":80", ":443", "app.internal", "APP.internal.", "[2001:db8::5]"],
  ...[
    "[2001:DB8:0::5]",
    "evil.test",
    "%2e",
    "%40",
    "/app",
    "/base",
    "/..",
    " ",
    "\t",
    ";",
    ",",
    "é",
  ],
);
const location = fc.oneof(
  fc.array(piece, { maxLength: 8 }).map((parts) => parts.join("")),
  fc
    .record({
      scheme: fc.constantFrom("http", "https"),
      authority,
      rest: fc.array(piece, { maxLength: 4 }),
    })
    .map(({ scheme, authority: host, rest }) => `${scheme}://${host}${rest.join("")}`),
);

export const target = defineTarget<Input>({
  name: "redirect-address",
  share: 40,
  inputs: fc.record({
    location,
    authority,
    isSecure: fc.boolean(),
    clientHost: fc.constantFrom(
      "app.test",
      "App.test:8443",
      "10.0.0.5:8080",
      "app.internal",
      "[::1]",
    ),
    clientScheme: fc.constantFrom("http" as const, "https" as const),
    prefix: fc.constantFrom("/", "/app", "/app/"),
    replacement: fc.constantFrom(null, "/", "/base", "/base/"),
    base: fc.constantFrom("", "/", "/base"),
  }),
  check(input) {
    const { clientScheme, clientHost, authority: own, isSecure } = input;
    // A target cannot send these in a header field.
    const sent = new Headers({ location: encodeURI(input.location).replace(/%25/g, "%") });
    const before = sent.get("location") ?? "";
    const head = {
      status: 302,
      lines: `Location: ${before}\r\n`,
      closes: false,
      hasLocation: true,
      with: (lines: string) => ({ lines }),
    };
    const attempt = {
      request: {
        clientScheme: () => clientScheme,
        clientHost: () => clientHost,
        path: "/app/x",
        edits: null,
      },
      route: { prefixes: [input.prefix], replacement: input.replacement },
      service: { service: { rewrite_redirects: true, path: input.base } },
      target: { authority: own, endpoint: { tls: isSecure ? {} : null } },
    };
    const made = withClientAddress(
      head as unknown as Arguments[0],
      attempt as unknown as Arguments[1],
    );
    const after = FieldList.ofLines(made.lines).get("location") ?? "";
    const scheme = isSecure ? "https" : "http";
    if (after === before) return;
    const [from, to] = [URL.parse(before), URL.parse(after)];
    mustEqual(
      from?.host.replace(/\.(?=:|$)/, ""),
      URL.parse(`${scheme}://${own}`)?.host,
      "the target",
    );
    mustEqual(from?.protocol, `${scheme}:`, "the target's scheme");
    mustEqual(to?.origin, URL.parse(`${clientScheme}://${clientHost}`)?.origin, "the client");
    mustEqual(`${from?.username}${to?.username}`, "", "user information");
    must(from?.search === to?.search && from?.hash === to?.hash, "the query is another one");
  },
});
