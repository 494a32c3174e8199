// Endpoints of single sign-on: start and callback of a sign-in, its settings and their test.
import { type SsoErrorCode, ssoErrors } from "../../auth/sso/failure.ts";
import { CALLBACK_PATH } from "../../auth/sso/sign-in.ts";
import type { ControlPlane } from "../../control-plane.ts";
import {
  bodyOf,
  dryRunParameter,
  ifMatchParameter,
  patchOf,
  plainResponses,
  queryParameter,
  readResponses,
  writeResponses,
} from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import { replyRead, replyWritten, requireKnownQuery, writeOptionsOf } from "../write-options.ts";

const path = "/api/v1/sso";
const tags = ["Single sign-on"];

export function ssoEndpoints(control: ControlPlane): Endpoint[] {
  const { sso } = control;
  return [
    startEndpoint(sso),
    callbackEndpoint(control),
    ...settingsEndpoints(sso),
    testEndpoint(sso),
  ];
}

type SingleSignOn = ControlPlane["sso"];

function startEndpoint(sso: SingleSignOn): Endpoint {
  return {
    method: "GET",
    path: "/api/v1/auth/sso/start",
    takesBody: false,
    description: {
      summary: "Start a sign-in at the identity provider",
      description: `A page to navigate to, not to fetch. ${errorsInWords}`,
      tags,
      parameters: [
        queryParameter("redirect", "Path of this gateway to redirect to afterwards; default: `/`"),
      ],
      responses: redirectResponses("To the identity provider, or to `/?sso_error=` and a code", {
        "400": "Single sign-on is disabled, or redirect is not a path of this gateway",
      }),
    },
    answer: async (call) => {
      requireKnownQuery(call, ["redirect"]);
      const redirect = call.query.get("redirect");
      const started = await sso.start({ ...browserOf(call), redirect });
      if ("error" in started) return toErrorPage(started.error, []);
      return redirectTo(started.url, [started.cookie]);
    },
  };
}

function callbackEndpoint({ sso, auth }: ControlPlane): Endpoint {
  return {
    method: "GET",
    path: CALLBACK_PATH,
    takesBody: false,
    description: {
      summary: "Complete a sign-in from the identity provider",
      description: `The redirect URI to register at the provider. ${errorsInWords}`,
      tags,
      parameters: [
        queryParameter("state", "State that the gateway sent"),
        queryParameter("code", "Authorization code"),
        queryParameter("error", "Error code of the provider"),
      ],
      responses: redirectResponses(
        "To the requested page, with the session cookie, or to `/?sso_error=` and a code",
      ),
    },
    answer: async (call) => {
      const cookies = call.headers.get("cookie");
      const parameters = call.query;
      const finished = await sso.finish({ ...browserOf(call), parameters, cookies });
      const spent = sso.expiredCookie(call.origin);
      if ("error" in finished) return toErrorPage(finished.error, [spent]);
      const isSecure = sso.hasSecureCookies(call.origin);
      const set = auth.cookies.set(finished.sessionSecret, isSecure, cookies);
      return redirectTo(finished.redirect, [...set, spent]);
    },
  };
}

function settingsEndpoints({ settings }: SingleSignOn): Endpoint[] {
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: {
        summary: "Get the settings of single sign-on",
        description: "Without the client secret: `client_secret_set` says whether one is set.",
        tags,
        responses: readResponses("Sso"),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return replyRead(settings.get());
      },
    },
    {
      method: "PUT",
      path,
      takesBody: true,
      description: {
        summary: "Replace the settings of single sign-on",
        description: "Absent fields return to their defaults, except the client secret.",
        tags,
        parameters: [dryRunParameter, ifMatchParameter],
        requestBody: bodyOf("SsoInput"),
        responses: writeResponses("Sso"),
      },
      answer: async (call) => {
        const options = writeOptionsOf(call);
        return replyWritten(await settings.replace(call.body, options), options);
      },
    },
    {
      method: "PATCH",
      path,
      takesBody: true,
      description: {
        summary: "Change some settings of single sign-on",
        tags,
        parameters: [dryRunParameter, ifMatchParameter],
        requestBody: patchOf("SsoInput"),
        responses: writeResponses("Sso"),
      },
      answer: async (call) => {
        const options = writeOptionsOf(call);
        return replyWritten(await settings.patch(call.body, options), options);
      },
    },
  ];
}

function testEndpoint(sso: SingleSignOn): Endpoint {
  return {
    method: "POST",
    path: `${path}/test`,
    takesBody: false,
    description: {
      summary: "Test the settings of single sign-on",
      description:
        "Checks the stored settings with the provider, enabled or not, and reports what is wrong. Signs no user in.",
      tags,
      responses: plainResponses("SsoTest", "Result of the test"),
    },
    answer: async (call) => {
      requireKnownQuery(call, []);
      return { body: await sso.test(call.origin) };
    },
  };
}

const browserOf = ({ principal, headers, origin }: Call) => ({
  origin,
  address: principal.address,
  userAgent: headers.get("user-agent") ?? "",
});

const toErrorPage = (code: SsoErrorCode, cookies: readonly string[]) =>
  redirectTo(`/?sso_error=${code}`, cookies);

function redirectTo(location: string, cookies: readonly string[]): Response {
  const headers = new Headers({ location });
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(null, { status: 302, headers });
}

const errorsInWords = `A failed sign-in ends at \`/?sso_error=\` and one of these codes: ${Object.entries(
  ssoErrors,
)
  .map(([code, meaning]) => `\`${code}\` (${meaning})`)
  .join(", ")}.`;

function redirectResponses(found: string, others: Readonly<Record<string, string>> = {}) {
  const location = { description: "Target of the redirect", schema: { type: "string" } };
  const error = { "application/json": { schema: { $ref: "#/components/schemas/Error" } } };
  const refusals = Object.entries({
    ...others,
    "403": "The address is not allowed to use the management API",
    "500": "Internal error",
  });
  return {
    "302": { description: found, headers: { Location: location } },
    ...Object.fromEntries(
      refusals.map(([status, description]) => [status, { description, content: error }]),
    ),
  };
}
