// Converts the JSON configuration of Caddy (`caddy adapt`); knows only the names of apps.
import { ApiError } from "../../model/error.ts";
import { AcmeCertificates } from "../acme.ts";
import type { ConversionContext } from "../convert.ts";
import { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { locateErrors, readText } from "../source-text.ts";
import { ADAPT_FIRST, isCaddyfile } from "./caddyfile.ts";
import { addServers } from "./servers.ts";
import { addStreams } from "./streams.ts";
import { addTls } from "./tls.ts";

export interface CaddyContext {
  readonly output: Output;
  readonly ordered: AcmeCertificates;
  /** Names for which Caddy requests certificates automatically. */
  readonly secured: Set<string>;
}

/** Throws a 400 with the line for an invalid configuration. */
export async function convertCaddy(
  bytes: Uint8Array,
  output: Output,
  { parseJson }: Pick<ConversionContext, "parseJson">,
): Promise<void> {
  if (isCaddyfile(new TextDecoder().decode(bytes))) throw new ApiError(400, ADAPT_FIRST);
  const source = await readText(bytes, parseJson);
  await locateErrors(source, (value) => {
    const root = new Members(value, { path: "", label: "", inner: "" }, output.report);
    const apps = root.object("apps");
    if (apps === null)
      throw new ApiError(
        400,
        "apps: is required: a configuration of Caddy as `caddy adapt` writes it",
      );
    root.omit("admin", "set the listen address of the management API");
    root.omit("logging", "use the plugin access-log");
    root.omit("storage", "certificates are requested again");
    apps.setLabel("app");
    apps.omit("pki", "this gateway has no CA");
    const context = {
      output,
      ordered: new AcmeCertificates(output),
      secured: new Set<string>(),
    };
    const http = apps.object("http");
    if (http !== null) addServers(http, context);
    addTls(apps.object("tls"), context);
    const streams = apps.object("layer4");
    if (streams !== null) addStreams(streams, context);
  });
}
