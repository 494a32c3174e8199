// Users: who may sign in and what they may do; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import { StatusBadge } from "../../parts/status.tsx";
import type { PageProps } from "../../pages.ts";

export default function UsersPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ email: "", name: "", role: "admin", password: "" }}
      table={{
        resource: "users",
        page: "users",
        title: "Users",
        text: "Who may sign in, and what they may do.",
        columns: [
          { title: "E-mail address", render: ({ email }) => email },
          { title: "Role", render: ({ role }) => <StatusBadge state={role} />, width: "6rem" },
        ],
        canClone: false,
        empty: {
          title: "No users yet",
          text: "Until there is one, anyone who reaches this address can change everything.",
        },
      }}
    />
  );
}
