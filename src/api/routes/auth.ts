// Endpoints of sign-in with a password, sign-out and sessions; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import {
  bodyOf,
  listResponses,
  pathParameter,
  plainResponses,
  queryParameter,
} from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { idOf } from "./resource-endpoints.ts";

const tags = ["Sign-in"];

export interface SignInSource {
  readonly control: ControlPlane;
  /** Whether browsers may send the cookie over HTTPS only. */
  readonly hasSecureCookies: () => boolean;
}

export function authEndpoints(source: SignInSource): Endpoint[] {
  return [
    loginEndpoint(source),
    logoutEndpoint(source),
    meEndpoint(source),
    ...sessionEndpoints(source),
  ];
}

function loginEndpoint({ control, hasSecureCookies }: SignInSource): Endpoint {
  return {
    method: "POST",
    path: "/api/v1/auth/login",
    takesBody: true,
    description: {
      summary: "Sign in with a password",
      description:
        "Sets a session cookie that lasts 7 days: `sluice_session_` and eight digits of the installation's ID, with the prefix " +
        "`__Host-` over HTTPS. A 401 with `X-Totp-Required: true` means that the password is " +
        "correct and a code is required as well. After 10 failures within 5 minutes, from one address or for one account, " +
        "the response is 429.",
      tags,
      requestBody: bodyOf("SignIn"),
      responses: plainResponses("Me", "The signed-in user", signInErrors),
    },
    answer: async (call) => {
      requireKnownQuery(call, []);
      const isSecure = hasSecureCookies();
      const { cookie, who } = await control.auth.signIn.signIn(call.body, {
        address: call.principal.address,
        userAgent: call.headers.get("user-agent") ?? "",
        isSecure,
      });
      const sent = call.headers.get("cookie");
      return { body: who, cookies: control.auth.cookies.set(cookie, isSecure, sent) };
    },
  };
}

const signInErrors = [400, 401, 403, 413, 415, 429, 500, 503];

function logoutEndpoint({ control, hasSecureCookies }: SignInSource): Endpoint {
  return {
    method: "POST",
    path: "/api/v1/auth/logout",
    takesBody: false,
    description: {
      summary: "Sign out",
      description: "Ends the session of the cookie and deletes the cookie.",
      tags,
      responses: plainResponses("SignedOut", "The session has ended", [403, 500]),
    },
    answer: async (call) => {
      requireKnownQuery(call, []);
      const sent = call.headers.get("cookie");
      const cookies = control.auth.cookies.clearAll(hasSecureCookies(), sent);
      control.auth.signIn.signOut(call.principal);
      await endedEverywhere(control);
      return { body: { logged_out: true }, cookies };
    },
  };
}

/** Waits, but not long, until an ended session has ended on all nodes. On this one it has. */
async function endedEverywhere({ sessions, fleet }: ControlPlane): Promise<void> {
  await sessions.settled();
  if (fleet === null || fleet.cutOffSince() !== null) return;
  await fleet.reachStored().catch(() => undefined);
}

function meEndpoint({ control }: SignInSource): Endpoint {
  return {
    method: "GET",
    path: "/api/v1/auth/me",
    takesBody: false,
    description: {
      summary: "Get the client's identity",
      description: "Before the first user exists, every client is an admin.",
      tags,
      responses: plainResponses("Me", "Identity of the client", [403, 500]),
    },
    answer: (call) => {
      requireKnownQuery(call, []);
      return { body: control.auth.signIn.who(call.principal) };
    },
  };
}

function sessionEndpoints({ control }: SignInSource): Endpoint[] {
  const path = "/api/v1/auth/sessions";
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: {
        summary: "List sessions",
        description: "Sessions of the user; admins may select a user, or all with an empty value.",
        tags,
        parameters: [
          queryParameter("user_id", "ID or e-mail address of a user; empty: all. Admins only"),
        ],
        responses: listResponses("Session", [403, 500]),
      },
      answer: (call: Call) => {
        requireKnownQuery(call, ["user_id"]);
        return { body: control.auth.sessionList.list(call.principal, call.query.get("user_id")) };
      },
    },
    {
      method: "DELETE",
      path: `${path}/:id`,
      takesBody: false,
      description: {
        summary: "End a session",
        description: "An own session; admins may end any.",
        tags,
        parameters: [pathParameter("ID of the session")],
        responses: plainResponses("Deleted", "The session has ended", [403, 404, 500]),
      },
      answer: async (call: Call) => {
        requireKnownQuery(call, []);
        control.auth.sessionList.end(call.principal, idOf(call));
        await endedEverywhere(control);
        return { body: { deleted: true } };
      },
    },
  ];
}
