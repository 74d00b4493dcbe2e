import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.ShareMemberDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Administrative calls about groups of every kind. */
final class GroupAdminCalls implements Subject {
    private final AdminClient admin;

    GroupAdminCalls(AdminClient admin) {
        this.admin = admin;
    }

    @Override
    public Object call(String operation, JsonNode with) throws Exception {
        if (operation.equals("list_groups")) {
            return listGroups();
        }
        if (operation.equals("list_group_kinds")) {
            return listGroupKinds();
        }
        String group = with.get("group").textValue();
        switch (operation) {
            case "delete_group" -> admin.deleteConsumerGroups(List.of(group)).all().get();
            case "remove_member" -> admin.removeMembersFromConsumerGroup(
                group,
                new RemoveMembersFromConsumerGroupOptions(
                    Set.of(new MemberToRemove(with.get("instance_id").textValue()))))
                .all().get();
            case "alter_group_offsets" -> admin.alterConsumerGroupOffsets(
                group,
                Values.byPartition(with.get("offsets"), offset -> new OffsetAndMetadata(offset.longValue())))
                .all().get();
            case "delete_group_offsets" -> admin.deleteConsumerGroupOffsets(
                group, new HashSet<>(Values.partitions(with.get("partitions")))).all().get();
            case "alter_share_group_offsets" -> admin.alterShareGroupOffsets(
                group, Values.byPartition(with.get("offsets"), JsonNode::longValue)).all().get();
            case "delete_share_group_offsets" -> admin.deleteShareGroupOffsets(
                group, Set.of(with.get("topic").textValue())).all().get();
            case "delete_share_group" -> admin.deleteShareGroups(List.of(group)).all().get();
            default -> {
                return ask(operation, group);
            }
        }
        return null;
    }

    private Object ask(String operation, String group) throws Exception {
        return switch (operation) {
            case "describe_group" ->
                told(admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get());
            case "group_offsets" -> Values.told(
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get(),
                each -> List.of(each.offset(), each.metadata()));
            case "describe_share_group" ->
                told(admin.describeShareGroups(List.of(group)).describedGroups().get(group).get());
            case "share_group_offsets" -> Values.told(
                admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
                    .partitionsToOffsetInfo(group).get(),
                each -> each.startOffset());
            default -> throw new IllegalArgumentException(operation);
        };
    }

    @SuppressWarnings("removal")
    private List<String> listGroups() throws Exception {
        try {
            return admin.listGroups().all().get().stream().map(GroupListing::groupId).toList();
        } catch (NoSuchMethodError olderThanKinds) {
            return admin.listConsumerGroups().all().get().stream().map(each -> each.groupId()).toList();
        }
    }

    private Map<String, String> listGroupKinds() throws Exception {
        Map<String, String> told = new LinkedHashMap<>();
        for (GroupListing each : admin.listGroups().all().get()) {
            each.type().ifPresent(type -> told.put(each.groupId(), type.toString()));
        }
        return told;
    }

    private static Map<String, Object> told(ConsumerGroupDescription group) {
        List<Object> members = new ArrayList<>();
        for (MemberDescription member : group.members()) {
            members.add(member(
                member.consumerId(),
                member.clientId(),
                member.host(),
                instanceId(member),
                member.assignment().topicPartitions()));
        }
        return group(state(group), group.partitionAssignor(), members);
    }

    private static String instanceId(MemberDescription member) {
        try {
            return member.groupInstanceId().orElse(null);
        } catch (NoSuchMethodError olderThanStaticMembers) {
            return null;
        }
    }

    private static Map<String, Object> told(ShareGroupDescription group) {
        List<Object> members = new ArrayList<>();
        for (ShareMemberDescription member : group.members()) {
            members.add(member(
                member.consumerId(),
                member.clientId(),
                member.host(),
                null,
                member.assignment().topicPartitions()));
        }
        return group(group.groupState().toString(), "", members);
    }

    @SuppressWarnings("removal")
    private static String state(ConsumerGroupDescription group) {
        try {
            return group.groupState().toString();
        } catch (NoSuchMethodError olderThanKinds) {
            return group.state().toString();
        }
    }

    private static Map<String, Object> group(String state, String protocol, List<Object> members) {
        return Map.of("state", state, "protocol", protocol, "members", members);
    }

    private static Map<String, Object> member(
            String memberId,
            String clientId,
            String host,
            String instanceId,
            Collection<TopicPartition> assigned) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("member_id", memberId);
        told.put("client_id", clientId);
        told.put("host", host);
        told.put("instance_id", instanceId);
        told.put("assigned", Values.told(assigned));
        return told;
    }
}
