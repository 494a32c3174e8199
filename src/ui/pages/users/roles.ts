// The permissions of each role, in one sentence; renders nothing.
import type { Role } from "../../api/resources.ts";

export const roleTexts: Readonly<Record<Role, string>> = {
  viewer: "Reads everything except secrets.",
  editor: "Also changes traffic objects: applications, services, routes, certificates.",
  admin: "Full access, including users, tokens, single sign-on, secrets, listeners and settings.",
};
