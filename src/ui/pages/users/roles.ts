// What each role may do, in one sentence each; draws nothing.
import type { Role } from "../../api/resources.ts";

export const roleTexts: Readonly<Record<Role, string>> = {
  viewer: "Sees everything that is not secret, and changes nothing.",
  editor:
    "Sees the same, and changes what concerns traffic: applications, services, routes, certificates.",
  admin:
    "May do everything: also users, tokens, single sign-on, secrets, listeners and the settings.",
};
