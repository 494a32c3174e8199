// Endpoints of signing in with a password, signing out and sessions; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
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
        "Sets the cookie of a session, which lasts 7 days: `sluice_session_` and eight digits of the installation's id, with " +
        "`__Host-` before it over HTTPS. A 401 with `X-Totp-Required: true` says that the password was " +
        "right and a code is needed as well. After 10 failures within 5 minutes, from one address or for one account, " +
        "the answer is 429.",
      tags,
      requestBody: bodyOf("SignIn"),
      responses: plainResponses("Me", "Who is signed in now", signInErrors),
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

const signInErrors = [400, 401, 403, 413, 415, 429, 500];

function logoutEndpoint({ control, hasSecureCookies }: SignInSource): Endpoint {
  return {
    method: "POST",
    path: "/api/v1/auth/logout",
    takesBody: false,
    description: {
      summary: "Sign out",
      description: "Ends the session of the cookie and takes the cookie back.",
      tags,
      responses: plainResponses("SignedOut", "The session has ended", [403, 500]),
    },
    answer: (call) => {
      requireKnownQuery(call, []);
      const sent = call.headers.get("cookie");
      const cookies = control.auth.cookies.takeBackAll(hasSecureCookies(), sent);
      control.auth.signIn.signOut(call.principal);
      return { body: { logged_out: true }, cookies };
    },
  };
}

function meEndpoint({ control }: SignInSource): Endpoint {
  return {
    method: "GET",
    path: "/api/v1/auth/me",
    takesBody: false,
    description: {
      summary: "Who the caller is",
      description: "While there are no users, everybody is an admin.",
      tags,
      responses: plainResponses("Me", "The caller", [403, 500]),
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
        description: "One's own; admins may name a user, or nobody with an empty value for all.",
        tags,
        parameters: [
          queryParameter("user_id", "Id or e-mail address of a user; empty: all. Admins only"),
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
        description: "One's own, for admins any.",
        tags,
        parameters: [pathParameter("Id of the session")],
        responses: plainResponses("Deleted", "The session has ended", [403, 404, 500]),
      },
      answer: (call: Call) => {
        requireKnownQuery(call, []);
        control.auth.sessionList.end(call.principal, idOf(call));
        return { body: { deleted: true } };
      },
    },
  ];
}
