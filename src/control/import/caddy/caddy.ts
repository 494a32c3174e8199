// Converts the JSON configuration of Caddy (`caddy adapt`); knows apps, and nothing of what is in them.
import { ApiError } from "../../../model/error.ts";
import { OrderedCertificates } from "../acme.ts";
import type { ConversionContext } from "../convert.ts";
import { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { reading, readText } from "../source-text.ts";
import { addServers } from "./servers.ts";
import { addStreams } from "./streams.ts";
import { addTls } from "./tls.ts";

export interface CaddyContext {
  readonly output: Output;
  readonly ordered: OrderedCertificates;
  /** Names that Caddy gets certificates for by itself. */
  readonly secured: Set<string>;
}

/** Throws a 400 for what is no such configuration, naming the line. */
export async function convertCaddy(
  bytes: Uint8Array,
  output: Output,
  { parseJson }: Pick<ConversionContext, "parseJson">,
): Promise<void> {
  const source = readText(bytes, parseJson);
  await reading(source, (value) => {
    const root = new Members(value, { path: "", label: "", inner: "" }, output.report);
    const apps = root.object("apps");
    if (apps === null)
      throw new ApiError(
        400,
        "apps: is required: a Caddyfile becomes JSON with `caddy adapt --config Caddyfile`",
      );
    root.leaveOut("admin", "the management API has addresses of its own");
    root.leaveOut("logging", "use the plugin access-log");
    root.leaveOut("storage", "certificates are ordered anew");
    apps.leaveOut("pki", "there is no authority in this gateway");
    const context = {
      output,
      ordered: new OrderedCertificates(output),
      secured: new Set<string>(),
    };
    const http = apps.object("http");
    if (http !== null) addServers(http, context);
    addTls(apps.object("tls"), context);
    const streams = apps.object("layer4");
    if (streams !== null) addStreams(streams, context);
  });
}
