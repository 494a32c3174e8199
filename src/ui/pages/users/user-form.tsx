// The form of a user, with the consequences of a change and the ways to sign in.
import { Alert } from "@mantine/core";
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Document } from "../../api/merge-patch.ts";
import { useMe, useResourceList, useStatus } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm } from "../../parts/object-form.tsx";
import { passwordRule } from "../account/own-password.tsx";
import { UserAccess } from "./user-access.tsx";

type User = Read<"users">;

const schema = formSchemaOf("users");
const initial = { role: "viewer" };

export function UserForm(start: FormStart<User>) {
  const hasSso = useStatus().data?.sso_enabled === true;
  const user = start.source?.value ?? null;
  const checkPassword = ({ password = "" }: Document): Record<string, string> => {
    const problem = password === "" && hasSso ? null : passwordRule(password as string);
    return problem === null ? {} : { password: problem };
  };
  return (
    <>
      <ObjectForm
        resource="users"
        schema={schema}
        start={start}
        initial={initial}
        isClonable={false}
        text="A user who can sign in to the gateway."
        notice={({ form }) => user !== null && <Consequences user={user} values={form.values} />}
        {...(user === null ? { check: checkPassword } : {})}
      />
      {user !== null && <UserAccess user={user} />}
    </>
  );
}

const rank = { viewer: 0, editor: 1, admin: 2 };

interface ConsequencesProps {
  readonly user: User;
  readonly values: Document;
}

/** Side effects of saving. */
function Consequences({ user, values }: ConsequencesProps) {
  const { data: me } = useMe();
  const others = useResourceList("users").data?.filter(({ id }) => id !== user.id);
  const { role, enabled } = values as Pick<User, "role" | "enabled">;
  const isLess = rank[role as keyof typeof rank] < rank[user.role as keyof typeof rank];
  const isShutOut = user.enabled && (isLess || !enabled);
  const wasAdmin = user.role === "admin" && user.enabled;
  const isLast =
    wasAdmin && others?.every((other) => other.role !== "admin" || !other.enabled) === true;
  if (isLast)
    return (
      <Alert color={isShutOut ? "red" : "blue"} mb="md" title="The only admin">
        This is the only enabled admin, and cannot be deleted, demoted or disabled. Create another
        admin first.
      </Alert>
    );
  if (!isShutOut) return null;
  return (
    <Alert color="yellow" mb="md">
      {user.id === me?.user?.id
        ? "This is you: saving ends your own session, and you cannot undo it yourself."
        : "Saving ends every session of this user."}
    </Alert>
  );
}
