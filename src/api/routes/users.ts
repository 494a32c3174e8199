// Endpoints of users, their passwords and their second factors; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import {
  bodyOf,
  deleteResponses,
  dryRunParameter,
  errorResponses,
  ifMatchParameter,
  pathParameter,
  plainResponses,
  writeResponses,
} from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import { replyWritten, requireKnownQuery, writeOptionsOf } from "../write-options.ts";
import { idOf, readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/users",
  word: "user",
  tag: "Users",
  schema: "User",
  inputSchema: "UserInput",
  isNamed: true,
  nameWord: "e-mail address",
};

const tags = [at.tag];
const user = pathParameter("Id or e-mail address of the user");

export function userEndpoints(control: ControlPlane): Endpoint[] {
  const { users } = control;
  return [
    ...readEndpoints(at, users),
    ...writeEndpoints(at, users),
    passwordEndpoint(control),
    ...totpEndpoints(control),
  ];
}

const callOf = (call: Call) => ({
  principal: call.principal,
  key: idOf(call),
  body: call.body,
});

function passwordEndpoint({ account }: ControlPlane): Endpoint {
  return {
    method: "PUT",
    path: `${at.path}/:id/password`,
    takesBody: true,
    description: {
      summary: "Change the password of a user",
      description:
        "Everybody may change their own password and gives the old one with it; admins need none for other users. " +
        "All other sessions of the user end.",
      tags,
      parameters: [user, dryRunParameter, ifMatchParameter],
      requestBody: bodyOf("PasswordChange"),
      responses: { ...writeResponses("User"), ...errorResponses([429]) },
    },
    answer: async (call) => {
      const options = writeOptionsOf(call);
      return replyWritten(await account.changePassword(callOf(call), options), options);
    },
  };
}

function totpEndpoints({ account }: ControlPlane): Endpoint[] {
  const path = `${at.path}/:id/totp`;
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: {
        summary: "What a user signs in with",
        description: "Everybody may ask for themselves, admins for everybody.",
        tags,
        parameters: [user],
        responses: plainResponses("SignInMeans", "What there is", [403, 404, 500]),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: account.signInMeans({ principal: call.principal, key: idOf(call) }) };
      },
    },
    {
      method: "POST",
      path,
      takesBody: true,
      description: {
        summary: "Begin the use of a second factor",
        description:
          "Only for oneself. The key is shown once, for an authenticator app; codes are asked for from the moment one is confirmed.",
        tags,
        parameters: [user],
        requestBody: bodyOf("OwnPassword"),
        responses: plainResponses("TotpSetup", "What the authenticator app needs", changeErrors),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await account.beginTotp(callOf(call)) };
      },
    },
    {
      method: "POST",
      path: `${path}/confirm`,
      takesBody: true,
      description: {
        summary: "Confirm the second factor with a code",
        description:
          "Only for oneself. From here on a code is needed to sign in. The recovery codes are shown once; each of them works once in the place of a code.",
        tags,
        parameters: [user],
        requestBody: bodyOf("TotpCode"),
        responses: plainResponses("RecoveryCodes", "The second factor is in use", changeErrors),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: account.confirmTotp(callOf(call)) };
      },
    },
    {
      method: "DELETE",
      path,
      takesBody: "optional",
      description: {
        summary: "Turn the second factor off",
        description:
          "Everybody may do so for themselves and gives the password with it; admins may for others and send no body.",
        tags,
        parameters: [user],
        requestBody: { ...bodyOf("OwnPassword"), required: false },
        responses: { ...deleteResponses(), ...errorResponses([400, 429]) },
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        await account.removeTotp(callOf(call));
        return { body: { deleted: true } };
      },
    },
  ];
}

const changeErrors = [400, 403, 404, 409, 413, 415, 429, 500];
