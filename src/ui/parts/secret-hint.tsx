// What those below admin are told beside secrets that are stored already; shows no secret.
import { includesRole, useRole } from "../api/queries.ts";
import { HelpText } from "./page-layout.tsx";

/** Nothing for admins, who may leave a secret out wherever it is sent. */
export function SecretHint() {
  if (includesRole(useRole(), "admin")) return null;
  return (
    <HelpText>
      Stored secrets stay while their fields are empty. To change where they are sent, enter them
      again.
    </HelpText>
  );
}
