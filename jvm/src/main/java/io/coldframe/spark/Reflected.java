package io.coldframe.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Methods that cannot be called by name: those whose types differ between Scala 2.12 and 2.13, and those of Hive's classes, which
 * Spark loads by a class loader of its own.
 */
final class Reflected {
  private Reflected() {}

  static Object call(Object target, String name, Object... arguments) throws ReflectiveOperationException {
    Method found = method(target.getClass(), name, arguments.length);
    if (found == null) {
      throw new NoSuchMethodException(target.getClass().getName() + "." + name);
    }
    try {
      found.setAccessible(true);
      return found.invoke(target, arguments);
    } catch (InvocationTargetException e) {
      throw new ReflectiveOperationException(name + ": " + e.getCause(), e.getCause());
    }
  }

  /** Of an interface where there is one: a proxy's own class is not for everybody. */
  private static Method method(Class<?> of, String name, int arguments) {
    for (Class<?> type = of; type != null; type = type.getSuperclass()) {
      for (Class<?> each : type.getInterfaces()) {
        Method found = method(each, name, arguments);
        if (found != null) {
          return found;
        }
      }
      for (Method one : type.getDeclaredMethods()) {
        if (one.getName().equals(name) && one.getParameterCount() == arguments) {
          return one;
        }
      }
    }
    return null;
  }

  static String text(Object target, String name) throws ReflectiveOperationException {
    Object found = call(target, name);
    return found == null ? null : found.toString();
  }

  /** What a method gives as a Seq. */
  static List<Object> all(Object target, String name) throws ReflectiveOperationException {
    return all(call(target, name));
  }

  /** What is in a Seq. */
  static List<Object> all(Object seq) {
    List<Object> found = new ArrayList<>();
    for (Iterator<?> each = ((Seq<?>) seq).iterator(); each.hasNext(); ) {
      found.add(each.next());
    }
    return found;
  }
}
