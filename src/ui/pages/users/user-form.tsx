// The form of a user: identity, role and sign-in; the form kernel saves it.
import {
  Alert,
  Button,
  PasswordInput,
  SimpleGrid,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { useLocation } from "wouter";
import { useMe, useResourceList, useStatus } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { RoleField } from "./role-field.tsx";
import { UserAccess } from "./user-access.tsx";
import { rulesFor, toBody, toValues, type UserValues } from "./user-values.ts";

type User = Read<"users">;
const LIST = pagePath("users");

export function UserForm({ source, template }: FormStart<User>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const hasSso = useStatus().data?.sso_enabled === true;
  const user = source?.value ?? null;
  const isNew = user === null;
  const { form, ...rest } = useResourceForm<"users", UserValues>({
    resource: "users",
    source,
    template,
    toValues,
    toBody,
    validate: rulesFor(isNew && !hasSso),
    secrets: ["password"],
    onSaved: ({ id }) => navigate(pagePath("users", id), { replace: true }),
  });
  return (
    <>
      <FormPage
        title={isNew ? "New user" : user.name}
        text={isNew ? "A user who can sign in to the gateway." : user.email}
        parent={{ href: LIST, label: "Users" }}
        form={rest}
        needs="admin"
        isNew={isNew}
        actions={
          !isNew && (
            <Can needs="admin">
              <Button
                variant="light"
                color="red"
                onClick={() => setPendingDelete([toPendingDelete(user)])}
              >
                Delete
              </Button>
            </Can>
          )
        }
      >
        {!isNew && <Consequences user={user} form={form} />}
        <IdentityFields form={form} />
        <Section title="Access">
          <Stack>
            <RoleField {...form.getInputProps("role")} />
            <Switch
              label="Enabled"
              description="Off: the user cannot sign in, and every session ends at once"
              {...form.getInputProps("enabled", { type: "checkbox" })}
            />
          </Stack>
        </Section>
        {isNew && <FirstPassword form={form} hasSso={hasSso} />}
      </FormPage>
      {!isNew && <UserAccess user={user} />}
      <ConfirmDelete
        resource="users"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </>
  );
}

interface FieldsProps {
  readonly form: UseFormReturnType<UserValues>;
}

function IdentityFields({ form }: FieldsProps) {
  return (
    <Section title="User">
      <Stack>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput
            label="Name"
            description="Display name, for example in the audit log"
            autoComplete="off"
            required
            {...form.getInputProps("name")}
          />
          <TextInput
            label="E-mail address"
            description="Used to sign in; the gateway sends no mail to it"
            type="email"
            autoComplete="off"
            required
            {...form.getInputProps("email")}
          />
        </SimpleGrid>
        <TagsField
          label="Tags"
          description="Labels for search and filters"
          {...form.getInputProps("tags")}
        />
        <Textarea label="Description" autosize {...form.getInputProps("description")} />
      </Stack>
    </Section>
  );
}

function FirstPassword({ form, hasSso }: FieldsProps & { readonly hasSso: boolean }) {
  return (
    <Section
      title="Password"
      text="Initial password; the user can change it under Your account and set up a second factor there."
    >
      <PasswordInput
        label="Password"
        description={
          hasSso
            ? "At least 10 characters. Empty: single sign-on only"
            : "At least 10 characters; not the name, the address or a common password"
        }
        autoComplete="new-password"
        required={!hasSso}
        maw={420}
        {...form.getInputProps("password")}
      />
    </Section>
  );
}

const rank = { viewer: 0, editor: 1, admin: 2 };

/** Side effects of saving. */
function Consequences({ user, form }: FieldsProps & { readonly user: User }) {
  const { data: me } = useMe();
  const others = useResourceList("users").data?.filter(({ id }) => id !== user.id);
  const { role, enabled } = form.values;
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
