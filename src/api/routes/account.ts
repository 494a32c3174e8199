// Endpoints of the passwords and second factors of users; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import {
  bodyOf,
  deleteResponses,
  dryRunParameter,
  errorResponses,
  ifMatchParameter,
  plainResponses,
  writeResponses,
} from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import { replyWritten, requireKnownQuery, writeOptionsOf } from "../write-options.ts";
import { descriptionOf, idOf, idParameter } from "./resource-endpoints.ts";

const at = descriptionOf("users");
const tags = [at.tag];
const user = idParameter("users");

export const accountEndpoints = (control: ControlPlane): Endpoint[] => [
  passwordEndpoint(control),
  ...totpEndpoints(control),
];

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
        "Users may change their own password and must send the old one; admins need none for other users. " +
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
        summary: "Get the sign-in methods of a user",
        description: "Users may read their own, admins those of all users.",
        tags,
        parameters: [user],
        responses: plainResponses("SignInMeans", "Sign-in methods of the user", [403, 404, 500]),
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
        summary: "Set up the second factor",
        description:
          "Only for the user's own account. The key for the authenticator app is shown once; sign-in requires codes after the confirmation.",
        tags,
        parameters: [user],
        requestBody: bodyOf("OwnPassword"),
        responses: plainResponses("TotpSetup", "Key for the authenticator app", changeErrors),
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
          "Only for the user's own account. From then on sign-in requires a code. The recovery codes are shown once; each works once instead of a code.",
        tags,
        parameters: [user],
        requestBody: bodyOf("TotpCode"),
        responses: plainResponses("RecoveryCodes", "The second factor is enabled", changeErrors),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await account.confirmTotp(callOf(call)) };
      },
    },
    {
      method: "DELETE",
      path,
      takesBody: "optional",
      description: {
        summary: "Disable the second factor",
        description:
          "Users may disable their own and must send the password; admins may disable that of others without a body.",
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
