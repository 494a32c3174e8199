// The form of a user: who it is and what they may do; the form kernel saves it.
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
import { ConfirmDelete, type Doomed, toDoomed } from "../../parts/confirm-delete.tsx";
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
  const [doomed, setDoomed] = useState<readonly Doomed[] | null>(null);
  const hasSso = useStatus().data?.sso_enabled === true;
  const user = source?.value ?? null;
  const isNew = user === null;
  const { form, ...rest } = useResourceForm<"users", UserValues>({
    resource: "users",
    ...{ source, template, toValues, toBody },
    validate: rulesFor(isNew && !hasSso),
    secrets: ["password"],
    onSaved: ({ id }) => navigate(pagePath("users", id), { replace: true }),
  });
  return (
    <>
      <FormPage
        title={isNew ? "New user" : user.name}
        text={isNew ? "Somebody who may sign in here." : user.email}
        parent={{ href: LIST, label: "Users" }}
        form={rest}
        needs="admin"
        isNew={isNew}
        actions={
          !isNew && (
            <Can needs="admin">
              <Button variant="light" color="red" onClick={() => setDoomed([toDoomed(user)])}>
                Delete
              </Button>
            </Can>
          )
        }
      >
        {!isNew && <Consequences user={user} form={form} />}
        <PersonFields form={form} />
        <Section title="Access">
          <Stack>
            <RoleField {...form.getInputProps("role")} />
            <Switch
              label="May sign in"
              description="Turned off, every session ends at once; nothing else is lost"
              {...form.getInputProps("enabled", { type: "checkbox" })}
            />
          </Stack>
        </Section>
        {isNew && <FirstPassword form={form} hasSso={hasSso} />}
      </FormPage>
      {!isNew && <UserAccess user={user} />}
      <ConfirmDelete
        resource="users"
        objects={doomed}
        onClose={() => setDoomed(null)}
        onDeleted={() => navigate(LIST)}
      />
    </>
  );
}

interface FieldsProps {
  readonly form: UseFormReturnType<UserValues>;
}

function PersonFields({ form }: FieldsProps) {
  return (
    <Section title="Person">
      <Stack>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput
            label="Name"
            description="As others see it, for example in the audit log"
            autoComplete="off"
            required
            {...form.getInputProps("name")}
          />
          <TextInput
            label="E-mail address"
            description="To sign in with; nothing is sent to it"
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
      text="Tell it to the person; they can change it under Your account, and set up a second factor there."
    >
      <PasswordInput
        label="Password"
        description={
          hasSso
            ? "At least 10 characters. Empty: only single sign-on lets them in"
            : "At least 10 characters; not the name, the address or a common one"
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

/** What saving would do that is easily overlooked. */
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
        This is the only admin who may sign in, and can be neither deleted, made less nor disabled.
        Create another admin first.
      </Alert>
    );
  if (!isShutOut) return null;
  return (
    <Alert color="yellow" mb="md">
      {user.id === me?.user?.id
        ? "This is you: saving ends your own session, and you cannot undo it yourself."
        : "Saving ends every session of this person."}
    </Alert>
  );
}
