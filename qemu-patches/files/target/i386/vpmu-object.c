/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -object vpmu: its properties, and the decision what the guest gets. */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-builtin-visit.h"
#include "qapi/qapi-commands-misc-target.h"
#include "qapi/visitor.h"
#include "qemu/crc32c.h"
#include "qemu/error-report.h"
#include "hw/qdev-core.h"
#include "migration/vmstate.h"
#include "qom/object_interfaces.h"
#include "vpmu-lease.h"
#include "vpmu-object.h"

QEMU_BUILD_BUG_ON((int)VPMU_EVENT_CLASS_ANY != (int)VPMU_EVENTS_ANY);
QEMU_BUILD_BUG_ON((int)VPMU_EVENT_CLASS_ENHANCED != (int)VPMU_EVENTS_ENHANCED);

static VpmuObject *the_object;

VpmuObject *x86_vpmu_object(void)
{
    return the_object;
}

/* The decision */

/* Adds a list of the object's to the policy, for the vendor of the vCPUs. */
static bool resolve(struct vpmu_rules *rules, enum vpmu_vendor vendor,
                    const char *property, const strList *list, Error **errp)
{
    for (; list; list = list->next) {
        const char *reason = vpmu_rules_add(rules, vendor, list->value);

        if (reason) {
            error_setg(errp, "vpmu: %s: '%s' %s", property, list->value,
                       reason);
            return false;
        }
    }
    return true;
}

static bool resolve_policy(VpmuObject *object, enum vpmu_vendor vendor,
                           Error **errp)
{
    object->policy.vendor = vendor;
    object->policy.event_class = object->event_class;
    return resolve(&object->policy.allow, vendor, "allow", object->allow,
                   errp) &&
        resolve(&object->policy.deny, vendor, "deny", object->deny, errp);
}

/* There is less than was asked for, and @reason says so. Takes @reason. */
static bool fall_short(VpmuObject *object, Error *reason, Error **errp)
{
    if (object->shortage != VPMU_SHORTAGE_POLICY_HIDE) {
        error_propagate(errp, reason);
        return false;
    }
    object->hidden = g_strdup(error_get_pretty(reason));
    warn_report("%s: the guest has no PMU (policy=hide)", object->hidden);
    error_free(reason);
    return true;
}

static const char *source_name(VpmuGrantSource source)
{
    return source == VPMU_GRANT_SOURCE_KVM ? "KVM on this host" : "TCG";
}

/* What the offer can be cut down to, or why it is not enough. */
static bool cut_offer(VpmuObject *object, const VpmuOffer *offer,
                      VpmuAmount asked, Error **errp)
{
    const struct vpmu_config *most = &offer->most;

    if (!most->gp) {
        error_setg(errp, "vpmu: a PMU was asked for, and there is none: %s",
                   offer->missing);
        return false;
    }
    if (!vpmu_cut(most, asked.gp, asked.fixed, &object->config) ||
        (object->shortage != VPMU_SHORTAGE_POLICY_REDUCE &&
         (object->config.gp != asked.gp ||
          object->config.fixed != asked.fixed))) {
        error_setg(errp, "vpmu: %u general-purpose and %u fixed counters were"
                   " asked for, and %s has %u and %u%s", asked.gp, asked.fixed,
                   source_name(offer->source), most->gp, most->fixed,
                   most->vendor == VPMU_VENDOR_AMD && asked.gp < most->gp
                   ? " (AMD's processors have 4, or 6 and more)" : "");
        return false;
    }
    return true;
}

/* The least that is worth a start. */
static VpmuAmount least_of(const VpmuObject *object)
{
    if (object->shortage == VPMU_SHORTAGE_POLICY_REDUCE) {
        return (VpmuAmount) {
            .gp = object->config.vendor == VPMU_VENDOR_AMD ? 4 : 1,
        };
    }
    return (VpmuAmount) { object->config.gp, object->config.fixed };
}

static bool lease(VpmuObject *object, Error **errp)
{
    const VpmuAsk ask = {
        .socket = object->socket,
        .policy = object->shortage,
        .yields = object->yields,
        .need = { object->config.gp, object->config.fixed },
        .least = least_of(object),
    };
    struct vpmu_config whole = object->config;
    VpmuAmount granted;

    if (!vpmu_lease_acquire(&ask, &granted, errp)) {
        return false;
    }
    if (!vpmu_cut(&whole, granted.gp, granted.fixed, &object->config)) {
        error_setg(errp, "vpmu: vpmud grants %u general-purpose counters,"
                   " which no processor of this vendor has", granted.gp);
        return false;
    }
    return true;
}

/*
 * Migration. What the guest is granted goes ahead of everything else, so that a
 * machine which cannot go on with it refuses before the source has stopped. The
 * counters that it needs the machine has leased already, at its own start.
 */

static struct VpmuContract contract_of(const VpmuObject *object)
{
    return (struct VpmuContract) {
        .source = object->source,
        .hidden = object->hidden != NULL,
        .vendor = object->config.vendor,
        .version = object->config.version,
        .gp = object->config.gp,
        .fixed = object->config.fixed,
        .event_class = object->event_class,
        .rules = crc32c(0, (const uint8_t *)&object->policy,
                        sizeof(object->policy)),
    };
}

static int contract_pre_save(void *opaque)
{
    VpmuObject *object = opaque;

    object->contract = contract_of(object);
    return 0;
}

/* NULL, or how they differ. A guest without a PMU is at home everywhere. */
static const char *contracts_differ(const struct VpmuContract *from,
                                    const struct VpmuContract *to)
{
    return from->hidden != to->hidden ? "one of them has a hidden PMU" :
        from->hidden ? NULL :
        from->source != to->source ? "KVM counts for one, TCG for the other" :
        from->gp != to->gp || from->fixed != to->fixed
        ? "they have another number of counters" :
        from->vendor != to->vendor || from->version != to->version
        ? "their PMUs are of another vendor or version" :
        from->event_class != to->event_class
        ? "they have another class of events" :
        from->rules != to->rules ? "they allow and deny other events" : NULL;
}

static int contract_post_load(void *opaque, int version_id)
{
    VpmuObject *object = opaque;
    const struct VpmuContract *from = &object->contract;
    struct VpmuContract to = contract_of(object);
    const char *reason = contracts_differ(from, &to);

    if (reason) {
        error_report("vpmu: a guest with %u general-purpose and %u fixed"
                     " counters cannot go on with %u and %u here: %s",
                     from->gp, from->fixed, to.gp, to.fixed, reason);
        return -EINVAL;
    }
    return 0;
}

static const VMStateDescription vmstate_contract = {
    .name = "vpmu-grant",
    .version_id = 1,
    .minimum_version_id = 1,
    .early_setup = true,
    .pre_save = contract_pre_save,
    .post_load = contract_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(contract.source, VpmuObject),
        VMSTATE_UINT8(contract.hidden, VpmuObject),
        VMSTATE_UINT8(contract.vendor, VpmuObject),
        VMSTATE_UINT8(contract.version, VpmuObject),
        VMSTATE_UINT8(contract.gp, VpmuObject),
        VMSTATE_UINT8(contract.fixed, VpmuObject),
        VMSTATE_UINT8(contract.event_class, VpmuObject),
        VMSTATE_UINT32(contract.rules, VpmuObject),
        VMSTATE_END_OF_LIST()
    }
};

static bool is_free(const VpmuOffer *offer, Error **errp)
{
    const char *held = offer->held ? offer->held() : NULL;

    if (held) {
        error_setg(errp, "vpmu: a PMU was asked for, and there is none: %s",
                   held);
        vpmu_lease_release();
    }
    return !held;
}

static bool decide(VpmuObject *object, const VpmuOffer *offer, Error **errp)
{
    VpmuAmount asked = {
        .gp = object->has_gp ? object->gp : offer->gp,
        .fixed = object->has_fixed ? object->fixed : offer->fixed,
    };
    Error *reason = NULL;

    object->source = offer->source;
    if (!resolve_policy(object, offer->most.vendor, errp)) {
        return false;
    }
    if (!cut_offer(object, offer, asked, &reason) ||
        !lease(object, &reason) || !is_free(offer, &reason)) {
        return fall_short(object, reason, errp);
    }
    if (object->config.gp < asked.gp || object->config.fixed < asked.fixed) {
        warn_report("vpmu: the guest has %u general-purpose and %u fixed"
                    " counters of the %u and %u that were asked for"
                    " (policy=reduce)", object->config.gp,
                    object->config.fixed, asked.gp, asked.fixed);
    }
    return true;
}

bool x86_vpmu_admit(VpmuObject *object, const VpmuOffer *offer, Error **errp)
{
    if (!object->admitted && decide(object, offer, errp)) {
        object->admitted = true;
        vmstate_register(NULL, VMSTATE_INSTANCE_ID_ANY, &vmstate_contract,
                         object);
    }
    return object->admitted;
}

void x86_vpmu_cut_0a(uint32_t leaf[4])
{
    if (the_object && the_object->admitted && !the_object->hidden) {
        vpmu_cut_0a(&the_object->config, &the_object->policy, leaf);
    }
}

bool x86_vpmu_denied(void *opaque, uint32_t code)
{
    return the_object && !vpmu_policy_allows(&the_object->policy, code);
}

/* The monitor */

VpmuGrant *qmp_query_vpmu_grant(Error **errp)
{
    VpmuObject *object = the_object;
    VpmuLeaseState lease;
    VpmuGrant *grant;

    if (!object || !object->admitted) {
        error_setg(errp, "the machine has no vpmu object that a vCPU has"
                   " asked");
        return NULL;
    }
    grant = g_new0(VpmuGrant, 1);
    *grant = (VpmuGrant) {
        .source = object->source,
        .q_class = object->event_class,
        .policy = object->shortage,
        .gp = object->hidden ? 0 : object->config.gp,
        .fixed = object->hidden ? 0 : object->config.fixed,
        .hidden = g_strdup(object->hidden),
        .has_lease = vpmu_lease_state(&lease),
        .lease = lease,
    };
    return grant;
}

/* The properties */

#define NUMBER_PROPERTY(name)                                               \
static void get_##name(Object *obj, Visitor *v, const char *property,       \
                       void *opaque, Error **errp)                          \
{                                                                           \
    uint8_t value = VPMU_OBJECT(obj)->name;                                 \
                                                                            \
    visit_type_uint8(v, property, &value, errp);                            \
}                                                                           \
                                                                            \
static void set_##name(Object *obj, Visitor *v, const char *property,       \
                       void *opaque, Error **errp)                          \
{                                                                           \
    VpmuObject *object = VPMU_OBJECT(obj);                                  \
                                                                            \
    object->has_##name = visit_type_uint8(v, property, &object->name, errp); \
}

#define LIST_PROPERTY(name)                                                 \
static void get_##name(Object *obj, Visitor *v, const char *property,       \
                       void *opaque, Error **errp)                          \
{                                                                           \
    visit_type_strList(v, property, &VPMU_OBJECT(obj)->name, errp);         \
}                                                                           \
                                                                            \
static void set_##name(Object *obj, Visitor *v, const char *property,       \
                       void *opaque, Error **errp)                          \
{                                                                           \
    strList *list = NULL;                                                   \
                                                                            \
    if (visit_type_strList(v, property, &list, errp)) {                     \
        qapi_free_strList(VPMU_OBJECT(obj)->name);                          \
        VPMU_OBJECT(obj)->name = list;                                      \
    }                                                                       \
}

#define ENUM_PROPERTY(name)                                                 \
static int get_##name(Object *obj, Error **errp)                            \
{                                                                           \
    return VPMU_OBJECT(obj)->name;                                          \
}                                                                           \
                                                                            \
static void set_##name(Object *obj, int value, Error **errp)                \
{                                                                           \
    VPMU_OBJECT(obj)->name = value;                                         \
}

NUMBER_PROPERTY(gp)
NUMBER_PROPERTY(fixed)
LIST_PROPERTY(allow)
LIST_PROPERTY(deny)
ENUM_PROPERTY(event_class)
ENUM_PROPERTY(shortage)

static char *get_socket(Object *obj, Error **errp)
{
    return g_strdup(VPMU_OBJECT(obj)->socket);
}

static void set_socket(Object *obj, const char *value, Error **errp)
{
    g_free(VPMU_OBJECT(obj)->socket);
    VPMU_OBJECT(obj)->socket = g_strdup(value);
}

static bool get_yields(Object *obj, Error **errp)
{
    return VPMU_OBJECT(obj)->yields;
}

static void set_yields(Object *obj, bool value, Error **errp)
{
    VPMU_OBJECT(obj)->yields = value;
}

/* What no vendor knows is said here, before there is a vCPU. */
static bool check_list(const char *property, const strList *list, Error **errp)
{
    struct vpmu_rules rules = {};

    for (; list; list = list->next) {
        const char *intel = vpmu_rules_add(&rules, VPMU_VENDOR_INTEL,
                                           list->value);

        if (intel && vpmu_rules_add(&rules, VPMU_VENDOR_AMD, list->value)) {
            error_setg(errp, "vpmu: %s: '%s' %s", property, list->value, intel);
            return false;
        }
    }
    return true;
}

static void vpmu_object_complete(UserCreatable *uc, Error **errp)
{
    VpmuObject *object = VPMU_OBJECT(uc);

    if (the_object) {
        error_setg(errp, "vpmu: a machine has one such object at most");
    } else if (phase_check(PHASE_MACHINE_INITIALIZED)) {
        error_setg(errp, "vpmu: the machine has its vCPUs already:"
                   " use -object");
    } else if (object->has_gp && !object->gp) {
        error_setg(errp, "vpmu: gp must be at least 1 (a guest without a PMU"
                   " needs no vpmu object)");
    } else if (check_list("allow", object->allow, errp) &&
               check_list("deny", object->deny, errp)) {
        the_object = object;
    }
}

static bool vpmu_object_can_be_deleted(UserCreatable *uc)
{
    return the_object != VPMU_OBJECT(uc) || !the_object->admitted;
}

static void vpmu_object_finalize(Object *obj)
{
    VpmuObject *object = VPMU_OBJECT(obj);

    if (the_object == object) {
        if (object->admitted) {
            vmstate_unregister(NULL, &vmstate_contract, object);
        }
        vpmu_lease_release();
        the_object = NULL;
    }
    qapi_free_strList(object->allow);
    qapi_free_strList(object->deny);
    g_free(object->socket);
    g_free(object->hidden);
}

static void vpmu_object_class_init(ObjectClass *oc, void *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);

    ucc->complete = vpmu_object_complete;
    ucc->can_be_deleted = vpmu_object_can_be_deleted;
    object_class_property_add(oc, "gp", "uint8", get_gp, set_gp, NULL, NULL);
    object_class_property_add(oc, "fixed", "uint8", get_fixed, set_fixed,
                              NULL, NULL);
    object_class_property_add_enum(oc, "class", "VpmuEventClass",
                                   &VpmuEventClass_lookup, get_event_class,
                                   set_event_class);
    object_class_property_add(oc, "allow", "strList", get_allow, set_allow,
                              NULL, NULL);
    object_class_property_add(oc, "deny", "strList", get_deny, set_deny,
                              NULL, NULL);
    object_class_property_add_enum(oc, "policy", "VpmuShortagePolicy",
                                   &VpmuShortagePolicy_lookup, get_shortage,
                                   set_shortage);
    object_class_property_add_str(oc, "socket", get_socket, set_socket);
    object_class_property_add_bool(oc, "yields", get_yields, set_yields);
}

static const TypeInfo vpmu_object_info = {
    .name = TYPE_VPMU_OBJECT,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(VpmuObject),
    .instance_finalize = vpmu_object_finalize,
    .class_init = vpmu_object_class_init,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    },
};

static void vpmu_object_register(void)
{
    type_register_static(&vpmu_object_info);
}

type_init(vpmu_object_register);
